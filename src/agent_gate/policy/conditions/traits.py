"""`read_only: true` and its like: only tools that have a trait, or that do not. One for each of `core/traits.py`."""

from dataclasses import dataclass
from functools import partial

from agent_gate.core.tool import Tool
from agent_gate.core.traits import TRAITS
from agent_gate.policy.conditions.condition import Condition, ConditionKind


@dataclass(frozen=True, slots=True)
class HasTrait(Condition):
    trait: str
    wanted: bool

    def label(self) -> str:
        return f"{self.trait}={self.wanted}".lower()

    def lacks(self, tool: Tool, *, allows: bool) -> str | None:
        """What a server claims for itself counts only where it makes us more careful, unless the operator trusts it."""
        cautious = TRAITS[self.trait].cautious
        claimed: bool = getattr(tool.traits, self.trait)
        if not tool.traits.trusted and cautious and not claimed and allows:
            return f"{self.trait} is only the server's own claim"
        held = claimed and (tool.traits.trusted or cautious)
        if held == self.wanted:
            return None
        return f"the tool is {'' if held else 'not '}{self.trait.replace('_', '-')}"


TRAIT_CONDITIONS = tuple(
    ConditionKind(
        key=name,
        doc=trait.rule,
        type=bool,
        schema={"anyOf": [{"type": ["boolean", "null"]}, {"type": "string", "pattern": r"\$\{[^}]*\}"}]},
        parse=partial(HasTrait, name),
    )
    for name, trait in TRAITS.items()
)

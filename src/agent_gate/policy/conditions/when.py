"""`when: {amount: {max: 100}}`: only calls whose arguments are so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from agent_gate.core.call import encode
from agent_gate.core.tool import Json, Tool
from agent_gate.policy.accents import composed
from agent_gate.policy.conditions.condition import Condition, ConditionKind
from agent_gate.policy.conditions.values import KINDS, check_written, holds, is_possible
from agent_gate.policy.steps import confines, inside, leads_out


@dataclass(frozen=True, slots=True)
class WithArguments(Condition):
    wanted: Mapping[str, Any]

    per_call = True

    def prepared(self, *, allows: bool) -> Condition:
        return self if allows else WithArguments(composed(self.wanted))

    def arguments(self) -> frozenset[str]:
        return frozenset(self.wanted)

    def mismatch(self, arguments: Mapping[str, Json], *, allows: bool) -> str | None:
        """An allow rule takes a value as it is; every other rule also looks inside lists and objects."""
        for name, wanted in self.wanted.items():
            value = arguments.get(name)
            seen = (value,) if allows else inside(composed(value))
            below = wanted.get("glob", "") if isinstance(wanted, Mapping) else ""
            if allows and confines(below) and leads_out(value):
                return f"argument {name} leads out with .."
            if not any(holds(wanted, one) for one in seen):
                return f"argument {name} does not fit"
        return None

    def wider(self, inner: Condition | None) -> bool:
        return isinstance(inner, WithArguments) and all(
            inner.wanted.get(name) == wanted for name, wanted in self.wanted.items()
        )

    def unmet(self, tool: Tool, extra: Sequence[str], *, allows: bool) -> str | None:
        """A name or a value that no call can have guards nothing."""
        covers = tool.definition.declared is None or not allows
        reasons = (
            never(tool, name, wanted, covered=covers or name in extra) for name, wanted in self.wanted.items()
        )
        return next(filter(None, reasons), None)


def never(tool: Tool, name: str, wanted: Any, *, covered: bool) -> str | None:
    """What holds for an argument that is left out can hold, whatever the argument is."""
    if holds(wanted, None):
        return None
    known: Mapping[str, Any] = tool.input_schema.get("properties") or {}
    if name not in tool.declared:
        return unknown(tool, name, [*dict.fromkeys([*known, *sorted(tool.declared.names)])], covered=covered)
    schema = known.get(name)
    if not isinstance(schema, Mapping) or (kind := schema.get("type")) not in KINDS:
        return None
    enum = schema.get("enum")
    if is_possible(wanted, kind, enum):
        return None
    values = f", one of {', '.join(map(str, enum))}" if enum else ""
    return f"{name} of {tool.wire} is of type {kind}{values}, and never {encode(wanted).decode()}"


def unknown(tool: Tool, name: str, known: Sequence[str], *, covered: bool) -> str | None:
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(known)}" if known else ""
    if tool.input_schema.get("additionalProperties") is False:
        return f"{tool.wire} has no argument {name}{hint}"
    if covered:
        return None
    return f"{tool.wire} does not declare {name}, and an allow covers that only where `extra` names it{hint}"


def parse(written: Mapping[str, Any]) -> WithArguments | None:
    for argument, wanted in written.items():
        check_written(wanted, argument)
    return WithArguments(written) if written else None


WHEN = ConditionKind(
    key="when",
    doc="Conditions on arguments: a value, a list of values, or `{glob, in, min, max}`.",
    type=Mapping[str, Any],
    schema={"type": ["object", "null"]},
    parse=parse,
)

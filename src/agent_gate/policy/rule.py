"""`Rule`: one entry of the permissions file, as it is written and as it decides, with the place where it stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from agent_gate.core.call import Effect
from agent_gate.core.notes import GIVEN, AtLeast, AtMost, InFile
from agent_gate.core.tool import Tool
from agent_gate.policy.conditions import CONDITIONS, Condition
from agent_gate.policy.names import head, may_match

NAMES = {"type": "array", "items": {"type": "string"}}
APPROVERS = {
    "anyOf": [
        {"type": "null"},
        NAMES,
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "names": NAMES,
                "own": {"type": "boolean"},
                "count": {"type": "integer", "minimum": 1, "maximum": 10},
                "not_own": {"type": "boolean"},
            },
        },
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproversEntry:
    """`approvers` of a rule in its long form."""

    names: Annotated[
        tuple[str, ...], "The only people whose answer counts; empty: everybody who may answer."
    ] = ()
    own: Annotated[bool, "The person that the agent works for may answer too."] = False
    count: Annotated[int, "How many different people have to say yes.", AtLeast(1), AtMost(10)] = 1
    not_own: Annotated[bool, "A yes of the person that the agent works for does not count."] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule or default: what it matches (all that is given must hold), and what follows."""

    ALSO: ClassVar[Mapping[str, InFile]] = {kind.key: InFile(kind.schema, kind.doc) for kind in CONDITIONS}

    pattern: Annotated[str, "Glob over the whole signature, case-sensitive."] = "*"
    action: Annotated[Effect, "What follows."]
    description: Annotated[str, "Why; shown with the decision."] = ""
    extra: Annotated[
        tuple[str, ...],
        "Undeclared arguments that an `allow` covers, and consequences such as `facts.submits`.",
    ] = ()
    lifetime: Annotated[float | None, "Seconds until a question asked by this rule expires.", AtLeast(1)] = (
        None
    )
    approvers: Annotated[
        tuple[str, ...],
        "The only people whose answer counts: a list of names, or `{names, own, count, not_own}`.",
        InFile(APPROVERS),
    ] = ()
    count: Annotated[int, "How many different people have to say yes.", GIVEN] = 1
    own: Annotated[bool, "Whether the person that the agent works for may answer too.", GIVEN] = False
    not_own: Annotated[bool, "Whether a yes of that person does not count.", GIVEN] = False
    via: Annotated[
        Literal["person", "client"], "`client` lets the agent's own client answer; for low risk only."
    ] = "person"
    conditions: Annotated[Mapping[str, Condition], "What else must hold, by its key.", GIVEN] = field(
        default_factory=dict
    )
    where: Annotated[str, "File, line and column of this entry.", GIVEN] = ""
    default: Annotated[bool, "Whether it is tried only after the rules.", GIVEN] = False

    @property
    def allows(self) -> bool:
        return self.action == "allow"

    @property
    def per_call(self) -> tuple[Condition, ...]:
        """The conditions that have to be looked at with each call."""
        return tuple(one for one in self.conditions.values() if one.per_call)

    def label(self) -> str:
        """The rule in few words, for a person."""
        alone = self.pattern == "*" and any(one.names_tools for one in self.conditions.values())
        parts = [*([] if alone else [self.pattern]), *(one.label() for one in self.conditions.values())]
        return f"{self.action} {' '.join(filter(None, parts))}"

    def arguments(self) -> frozenset[str]:
        """The arguments that its conditions look at."""
        return frozenset[str]().union(*(one.arguments() for one in self.conditions.values()))

    def points(self) -> bool:
        """Whether it says which tools it is for, by a name or by a condition."""
        return bool(head(self.pattern)) or any(one.names_tools for one in self.conditions.values())

    def reaches(self, namespace: str, source: str = "") -> bool:
        """Whether it can mean tools of this namespace, whose source the file spells so."""
        return all(one.reaches(namespace, source, allows=self.allows) for one in self.conditions.values())

    def lacks(self, tool: Tool) -> str | None:
        """Which of the traits that it asks for the tool does not have; None where it has them all."""
        reasons = (one.lacks(tool, allows=self.allows) for one in self.conditions.values())
        return next(filter(None, reasons), None)

    def excludes(
        self, tool: Tool, caller: str, person: str = "", groups: frozenset[str] = frozenset()
    ) -> str | None:
        """What rules it out for every call of `tool` by `caller`, who works for `person`; or None."""
        if not may_match(self.pattern, tool, allows=self.allows):
            return "pattern names another tool"
        for one in self.conditions.values():
            why = one.excludes(tool, caller, allows=self.allows) or one.is_for_others(person, groups)
            if why:
                return why
        return None


def make_rule(*, action: Effect = "ask", **keys: Any) -> Rule:
    """A rule of the keys that its entry in a file would have."""
    read = {kind.key: kind.parse(keys.pop(kind.key)) for kind in CONDITIONS if keys.get(kind.key) is not None}
    own = {key: value for key, value in keys.items() if key not in Rule.ALSO}
    return Rule(action=action, conditions={key: one for key, one in read.items() if one is not None}, **own)

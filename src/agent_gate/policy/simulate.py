"""Recorded calls against changed rules: what was decided then, what would be decided now. Pure; the record is read elsewhere.

Arguments that were masked in the record cannot be tried against a rule's `when`; where that matters, it is said.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_gate.core.call import Decision
from agent_gate.core.declared import EVERYTHING
from agent_gate.core.tool import Definition, Json, Tool
from agent_gate.observe.redact import MASK
from agent_gate.policy.decide import Policy
from agent_gate.policy.subject import Subject

MOST_EXAMPLES = 5
Find = Callable[[str], Tool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One decided call as the record has it. `effect` is what the rules said, before any grant."""

    call: str
    at: float
    caller: str
    tool_id: str
    wire: str
    signature: str
    arguments: Mapping[str, Json]
    person: str = ""
    groups: frozenset[str] = frozenset()
    effect: str
    rule: str
    where: str
    count: int = 1


@dataclass(slots=True)
class Difference:
    """Calls that would be decided differently, folded where everything but the time is the same."""

    caller: str
    signature: str
    before: str
    after: str
    rule: str
    where: str
    notes: tuple[str, ...]
    count: int = 0
    calls: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Report:
    """`tried` calls, of which `same` would be decided as they were."""

    tried: int
    same: int
    differences: list[Difference]


def recorded(row: Mapping[str, Any]) -> Recorded | None:
    """The decision in a row of the record; None for rows that tell something else, and for what a person did, which
    no rule is asked about."""
    body = row["body"]
    if "decision" not in body or "signature" not in body:
        return None
    if body["decision"] == "allow" and not body.get("rule") and not body.get("grant"):
        return None
    signature = str(body["signature"])
    return Recorded(
        call=row["call"],
        at=row["at"],
        caller=row["caller"],
        tool_id=row["tool"],
        wire=str(body.get("wire") or signature.partition("(")[0]),
        signature=signature,
        arguments=body.get("arguments") or {},
        person=str(body.get("person") or ""),
        groups=frozenset(body.get("groups") or ()),
        effect="ask" if body.get("grant") else str(body["decision"]),
        rule=str(body.get("rule") or ""),
        where=str(body.get("where") or ""),
        count=int(body.get("count") or 1),
    )


def stand_in(call: Recorded) -> Tool:
    """A tool that is gone, as far as the record remembers it; nothing is known of its traits."""
    return Tool(
        id=call.tool_id,
        namespace=call.tool_id.partition(":")[0],
        name=call.wire,
        wire=call.wire,
        alias=call.wire,
        source="",
        pin="",
        definition=Definition(name=call.wire),
        validate=lambda _arguments: None,
        sign=lambda _arguments: call.signature,
        declared=EVERYTHING,
    )


def doubts(policy: Policy, call: Recorded, known: bool) -> tuple[str, ...]:
    """Why this replay may not be exact."""
    masked = {name for name, value in call.arguments.items() if value == MASK}
    tried = {name for rule in (*policy.rules, *policy.defaults) for name in rule.arguments()}
    out = [
        f"{name} was masked in the record, so `when` could not be tried" for name in sorted(masked & tried)
    ]
    return tuple(out if known else [*out, "the tool is gone, so its traits are not known"])


def recorded_subject(call: Recorded, tool: Tool) -> Subject:
    """The call as rules look at it, by whom it was for then."""
    return Subject(tool, call.arguments, call.signature, call.caller, None, call.person, call.groups)


class Simulation:
    """Decides recorded calls again with `policy`, a portion of the record at a time."""

    def __init__(self, policy: Policy, find: Find) -> None:
        self._policy, self._find = policy, find
        self._tried = self._same = 0
        self._found: dict[tuple[str, ...], Difference] = {}

    def add(self, calls: Iterable[Recorded]) -> None:
        for call in calls:
            tool = self._find(call.tool_id)
            subject = recorded_subject(call, tool or stand_in(call))
            decision = self._policy.decide(subject)
            self._tried += call.count
            if decision.effect == call.effect:
                self._same += call.count
            else:
                self._note(call, decision, known=tool is not None)

    def _note(self, call: Recorded, decision: Decision, *, known: bool) -> None:
        key = (call.caller, call.signature, call.effect, decision.effect, decision.where)
        if key not in self._found:
            self._found[key] = Difference(
                call.caller,
                call.signature,
                call.effect,
                decision.effect,
                decision.rule,
                decision.where,
                doubts(self._policy, call, known),
            )
        found = self._found[key]
        found.count += call.count
        found.calls = [*found.calls, call.call][:MOST_EXAMPLES]

    def report(self) -> Report:
        found = sorted(self._found.values(), key=lambda d: (-d.count, d.signature))
        return Report(self._tried, self._same, found)

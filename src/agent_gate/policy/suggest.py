"""Rules that the answers of the past suggest, and the rule that one question would become. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent_gate.core.approval import Approval
from agent_gate.core.signature import pairs
from agent_gate.core.tool import Json, Tool
from agent_gate.errors import InvalidArgs
from agent_gate.policy.decide import Policy, uncovered
from agent_gate.policy.names import named_arguments
from agent_gate.policy.rule import make_rule
from agent_gate.policy.simulate import Find, Recorded, recorded, recorded_subject, stand_in

ENDS = ("approved", "denied", "expired", "withdrawn")
TOLD_OF_QUESTIONS = ("pending", *ENDS)
"""The states of the rows that say what was asked and what became of it."""
LEAST_ASKS = 5
LEAST_DIFFERENT = 3
LEAST_SHARE = 0.9
LONGEST_VALUE = 200
PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
SPECIAL = re.compile(r"[*?\[]|\$(?=\{)")
RuleScope = Literal["exact", "tool"]


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """One question of the past: the call, how it ended and how long a person took."""

    call: Recorded
    state: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A rule that would have answered most of these questions, and what it rests on."""

    text: str
    rule: Mapping[str, Json]
    asked: int
    approved: int
    denied: int
    unanswered: int


def literal(text: str) -> str:
    """A glob that matches exactly this text, and in which a file of rules finds no variable to fill."""
    return SPECIAL.sub(lambda found: f"[{found[0]}]", text)


def past_questions(rows: Iterable[Mapping[str, Any]]) -> list[PastQuestion]:
    """The questions in rows of the record, whatever their order; open ones are left out."""
    asked: dict[str, Recorded] = {}
    ended: dict[str, tuple[str, float]] = {}
    for row in rows:
        if row["state"] == "pending" and (call := recorded(row)) is not None:
            asked[row["call"]] = call
        elif row["state"] in ENDS:
            ended[row["call"]] = (row["state"], row["at"])
    return [
        PastQuestion(call, ended[ident][0], ended[ident][1] - call.at)
        for ident, call in asked.items()
        if ident in ended and ended[ident][0] != "withdrawn"
    ]


def suggest(policy: Policy, questions: Sequence[PastQuestion], find: Find) -> list[Suggestion]:
    """Rules for what is asked often and answered alike, the widest first; what the rules settle by now is left out.

    A wider rule rests on different calls: one that is repeated until it earns a rule of its own says nothing of others.
    """
    still = [asked for asked in questions if still_asked(policy, asked.call, find)]
    repeated = {
        asked.call.call
        for (caller, pattern, tool_id), group in grouped(still, "exact", find).items()
        if suggestion(caller, pattern, group, find(tool_id)) is not None
        for asked in group
    }
    out: list[Suggestion] = []
    covered: set[str] = set()
    for scope in ("tool", "part", "exact"):
        for (caller, pattern, tool_id), group in sorted(grouped(still, scope, find).items()):
            tool = find(tool_id)
            rest = [asked for asked in group if asked.call.call not in repeated]
            if scope != "exact" and (
                len({asked.call.signature for asked in rest}) < LEAST_DIFFERENT
                or suggestion(caller, pattern, rest, tool) is None
                or risky(tool)
            ):
                continue
            made = suggestion(caller, pattern, group, tool)
            if made is None or (scope == "tool" and made.rule["action"] == "allow" and many_sided(tool)):
                continue
            if not covered.issuperset(asked.call.call for asked in group):
                out.append(made)
                covered.update(asked.call.call for asked in group)
    return sorted(out, key=lambda made: -made.asked)


def grouped(
    questions: Sequence[PastQuestion], scope: str, find: Find
) -> Mapping[tuple[str, str, str], Sequence[PastQuestion]]:
    """Questions by caller, by what a rule of this scope would match, and by tool."""
    groups: defaultdict[tuple[str, str, str], list[PastQuestion]] = defaultdict(list)
    for asked in questions:
        pattern = pattern_of(asked.call, scope, find)
        if pattern is not None:
            groups[asked.call.caller, pattern, asked.call.tool_id].append(asked)
    return groups


def still_asked(policy: Policy, call: Recorded, find: Find) -> bool:
    tool = find(call.tool_id) or stand_in(call)
    return policy.decide(recorded_subject(call, tool)).effect == "ask"


def risky(tool: Tool | None) -> bool:
    """Whether a rule for every call of this tool should not be proposed: it destroys, or nobody knows."""
    return tool is None or tool.traits.destructive


def many_sided(tool: Tool | None) -> bool:
    """Whether the first part of its signature says what a call does, as the service in `call(light.turn_on, hall)`:
    to have approved some is no word on the others."""
    return tool is not None and ", " in (tool.definition.template or "") and not tool.traits.read_only


def pattern_of(call: Recorded, scope: str, find: Find) -> str | None:
    """What a rule of this scope would match; None where there is nothing between the call and its tool."""
    if scope == "exact":
        return literal(call.signature)
    tool = find(call.tool_id) or stand_in(call)
    if scope == "tool":
        return tool_pattern(tool)
    first, separator, _ = call.signature.partition(", ")
    return f"{literal(first)}, *)" if separator and many_sided(tool) else None


def tool_pattern(tool: Tool) -> str:
    """The pattern for every call of a tool."""
    return tool.wire if tool.definition.template == "" else f"{tool.wire}(*)"


def suggestion(
    caller: str, pattern: str, group: Sequence[PastQuestion], tool: Tool | None
) -> Suggestion | None:
    """A rule for this group, where people were of one mind."""
    total = len(group)
    approved = sum(asked.state == "approved" for asked in group)
    denied = sum(asked.state == "denied" for asked in group)
    if total < LEAST_ASKS or max(approved, denied) < LEAST_SHARE * total:
        return None
    action, count = ("allow", approved) if approved >= denied else ("deny", denied)
    from statistics import median  # and random numbers and fractions, for whoever asks for advice

    took = median(asked.seconds for asked in group if asked.state in ("approved", "denied"))
    word = "approved" if action == "allow" else "denied"
    text = f"{count} of {total} asks for {pattern} by {caller} were {word}, typically after {took:.0f} s"
    rule: dict[str, Json] = {
        "pattern": pattern,
        "action": action,
        "callers": [caller],
        "description": f"{count} of {total} asks were {word}",
    }
    if action == "allow" and tool is not None:
        calls = [asked.call.arguments for asked in group if asked.state == "approved"]
        extra = needed_extra(pattern, {}, tool, calls)
        rule |= {"extra": extra} if extra else {}
    return Suggestion(text, rule, total, approved, denied, total - approved - denied)


def rule_from(approval: Approval, tool: Tool | None, action: str, scope: RuleScope) -> dict[str, Json]:
    """The rule that would have answered this question: for exactly these arguments, or for every call of the tool.

    Arguments that the signature does not show are pinned by `when`, those that were left out too, so that nothing
    rides along; undeclared ones that an allow would leave to a person are named by `extra`.
    """
    pattern = literal(approval.signature)
    if scope == "tool":
        pattern = tool_pattern(tool) if tool is not None else f"{approval.asked.wire}(*)"
    rule: dict[str, Json] = {
        "pattern": pattern,
        "action": action,
        "callers": [approval.caller.name],
        "description": "made from a question",
    }
    if action != "allow":
        return rule
    shown = approval.signature == pairs(approval.asked.wire, approval.arguments)
    if tool is None and not shown and scope == "exact":
        raise InvalidArgs(
            "The tool is not there now, so nobody can tell what its signature leaves out. "
            "Try again when its source is back, or answer “always for this” instead"
        )
    if tool is None:
        return rule
    when = hidden_arguments(approval, tool) if scope == "exact" and not shown else {}
    extra = needed_extra(pattern, when, tool, [approval.arguments])
    return rule | ({"when": when} if when else {}) | ({"extra": extra} if extra else {})


def needed_extra(
    pattern: str, when: Mapping[str, Json], tool: Tool, calls: Iterable[Mapping[str, Json]]
) -> list[str]:
    """What `extra` must name, so that an allow of this pattern covers these calls."""
    rule = make_rule(pattern=pattern, action="allow", when=when)
    spells = named_arguments(pattern)
    return sorted({name for arguments in calls for name in uncovered(rule, spells, tool, arguments)})


def hidden_arguments(approval: Approval, tool: Tool) -> dict[str, Json]:
    """What the signature does not show, as `when` names it: null stands for an argument that was left out."""
    template = tool.definition.template
    if template is None:
        return {}
    shown, given = set(PLACEHOLDER.findall(template)), approval.arguments
    told = [name for name in given if name not in shown and name not in approval.asked.secret]
    absent = sorted(tool.declared.names - shown - given.keys())
    return {name: pinned(name, given[name]) for name in told} | dict.fromkeys(absent)


def pinned(name: str, value: Json) -> Json:
    """A value that a rule can name; lists, objects and long texts cannot be."""
    if (
        value is None
        or isinstance(value, dict | list)
        or (isinstance(value, str) and len(value) > LONGEST_VALUE)
    ):
        raise InvalidArgs(
            f"The argument {name} is not shown by the signature and cannot be part of a rule. "
            "Answer “always for this” instead, or make the rule for the whole tool"
        )
    return {"glob": literal(value)} if isinstance(value, str) and "${" in value else value

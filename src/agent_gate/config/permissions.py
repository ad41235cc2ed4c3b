"""permissions.yaml into rules. What a condition means is said by the policy engine, not here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NoReturn

from agent_gate.config.decode import Reading, convert, decode
from agent_gate.config.files.nodes import Node, entries, fail, items, join, read_each
from agent_gate.config.shape import GIVEN, InFile
from agent_gate.core.call import Effect
from agent_gate.policy.conditions import CONDITIONS, Condition, ConditionKind, Misread
from agent_gate.policy.rule import ApproversEntry, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTest:
    """An expectation that `agent-gate check` verifies: this call is decided that way."""

    tool: Annotated[str, "Tool name or id."]
    args: Annotated[Mapping[str, Any], "Arguments of the call."] = field(default_factory=dict)
    caller: Annotated[str | None, "The agent that calls; null: `default`."] = None
    person: Annotated[str, "The person it works for; empty: that of the agent's entry."] = ""
    groups: Annotated[tuple[str, ...], "Their groups; empty: those of the person's entry."] = ()
    expect: Annotated[Effect, "The decision that must follow."]
    description: Annotated[str, "What this guards."] = ""
    where: Annotated[str, "File, line and column of this entry.", GIVEN] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """permissions.yaml as a whole."""

    defaults: Annotated[
        tuple[Rule, ...],
        "Tried after the rules, first match wins; without a match, `ask`.",
        InFile({"type": ["array", "null"], "items": {"$ref": "#/$defs/Rule"}}),
    ] = ()
    rules: Annotated[
        tuple[Rule, ...],
        "Every `deny` before every `allow` before every `ask`, whatever their order.",
        InFile({"type": ["array", "null"], "items": {"$ref": "#/$defs/Rule"}}),
    ] = ()
    policy_tests: Annotated[
        tuple[PolicyTest, ...],
        "Expectations that `agent-gate check` verifies.",
        InFile({"type": ["array", "null"], "items": {"$ref": "#/$defs/PolicyTest"}}),
    ] = ()


def read_permissions(root: Node, reading: Reading) -> Permissions:
    readers: dict[str, Callable[[str], Any]] = {
        "defaults": lambda key: read_rules(root, key, reading),
        "rules": lambda key: read_rules(root, key, reading),
        "policy_tests": lambda _: read_tests(root, reading),
    }
    parts = read_each(readers.items(), lambda key, read: read(key))
    return decode(root, Permissions, "", reading, **parts)


def read_rules(root: Node, key: str, reading: Reading) -> tuple[Rule, ...]:
    found = root.get(key)
    written = enumerate(items(found, key) if found else [])
    return tuple(read_each(written, lambda i, node: read_rule(node, join(key, i), reading)).values())


def read_rule(node: Node, path: str, reading: Reading) -> Rule:
    found = {kind.key: found for kind in CONDITIONS if (found := node.get(kind.key)) is not None}
    read = {
        kind.key: read_condition(found[kind.key], kind, path, reading)
        for kind in CONDITIONS
        if kind.key in found
    }
    conditions = {key: condition for key, condition in read.items() if condition is not None}
    asked = read_approvers(node, path, reading)
    rule = decode(
        node,
        Rule,
        path,
        reading,
        conditions=conditions,
        where=str(node.mark),
        approvers=asked.names,
        own=asked.own,
        count=asked.count,
        not_own=asked.not_own,
    )
    if asked.count > 1 and rule.via == "client":
        fail(node.mark, path, '"via: client" has one answer, and "approvers" wants more than one')
    if node.get("pattern") is None and not conditions:
        fail(node.mark, path, 'names nothing to match; give a "pattern" ("*" matches everything)')
    return rule


def read_approvers(node: Node, path: str, reading: Reading) -> ApproversEntry:
    """A list of names, or the long form."""
    found, own = node.get("approvers"), join(path, "approvers")
    if found is None or found.value is None:
        return ApproversEntry()
    if isinstance(found.value, dict):
        entry = decode(found, ApproversEntry, own, reading)
        if 0 < len(entry.names) + entry.own < entry.count:
            fail(found.mark, own, f"names fewer people than the {entry.count} who have to say yes")
        return entry
    return ApproversEntry(names=convert(found, tuple[str, ...], own, reading))


def read_condition(node: Node, kind: ConditionKind, path: str, reading: Reading) -> Condition | None:
    own = join(path, kind.key)
    try:
        return kind.parse(convert(node, kind.type, own, reading))
    except Misread as misread:
        refuse(node, own, misread)


def refuse(node: Node, path: str, misread: Misread) -> NoReturn:
    """The fault at the key or value that it lies in."""
    mark = node.mark
    for key in misread.path:
        mark, node, path = node.key_mark(key), entries(node, path)[key], join(path, key)
    found = f", found {node.kind}" if misread.tells_kind else ""
    fail(mark if misread.of_key else node.mark, path, f"{misread}{found}")


def read_tests(root: Node, reading: Reading) -> tuple[PolicyTest, ...]:
    found = root.get("policy_tests")
    written = enumerate(items(found, "policy_tests") if found else [])
    return tuple(
        read_each(
            written,
            lambda i, node: decode(node, PolicyTest, join("policy_tests", i), reading, where=str(node.mark)),
        ).values()
    )

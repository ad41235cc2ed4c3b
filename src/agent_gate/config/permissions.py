"""permissions.yaml into raw rules. What a rule means is decided by the policy engine, not here."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

from agent_gate.config.decode import Reading, decode
from agent_gate.config.files.nodes import Node, entries, fail, items, join
from agent_gate.config.shape import GIVEN, AtLeast, InFile
from agent_gate.core.ids import fold_namespace
from agent_gate.core.rule import Rule

Action = Literal["allow", "deny", "ask"]
GLOB = frozenset("*?[")
PREDICATES = ("glob", "in", "min", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSettings:
    """One rule or default: what it matches, and what follows."""

    pattern: Annotated[str, "Glob over the whole signature, case-sensitive."] = "*"
    action: Annotated[Action, "What follows."]
    description: Annotated[str, "Why; shown with the decision."] = ""
    namespace: Annotated[str | None, "Only tools of this service or server (a glob)."] = None
    callers: Annotated[tuple[str, ...] | None, "Only these agents (globs); null: all."] = None
    read_only: Annotated[bool | None, "Only tools that are, or are not, read-only."] = None
    destructive: Annotated[bool | None, "Only tools that are, or are not, destructive."] = None
    idempotent: Annotated[bool | None, "Only tools that are, or are not, idempotent."] = None
    open_world: Annotated[bool | None, "Only tools that do, or do not, reach beyond their source."] = None
    when: Annotated[
        Mapping[str, Any],
        "Conditions on arguments: a value, a list of values, or `{glob, in, min, max}`.",
        InFile({"type": ["object", "null"]}),
    ] = field(default_factory=dict)
    extra: Annotated[tuple[str, ...], "Undeclared arguments that an `allow` covers."] = ()
    lifetime: Annotated[float | None, "Seconds until a question asked by this rule expires.", AtLeast(1)] = (
        None
    )
    approvers: Annotated[tuple[str, ...], "The only people whose answer counts."] = ()
    via: Annotated[
        Literal["person", "client"], "`client` lets the agent's own client answer; for low risk only."
    ] = "person"
    where: Annotated[str, "File, line and column of this entry.", GIVEN] = ""

    def rule(self) -> Rule:
        """The rule as policy takes it."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        sets = {"extra": frozenset(self.extra), "callers": tuple(self.callers or ())}
        return Rule(**given | sets)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTest:
    """An expectation that `agent-gate check` verifies: this call is decided that way."""

    tool: Annotated[str, "Tool name or id."]
    args: Annotated[Mapping[str, Any], "Arguments of the call."] = field(default_factory=dict)
    caller: Annotated[str | None, "The agent that calls; null: `default`."] = None
    expect: Annotated[Action, "The decision that must follow."]
    description: Annotated[str, "What this guards."] = ""
    where: Annotated[str, "File, line and column of this entry.", GIVEN] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """permissions.yaml as a whole."""

    defaults: Annotated[
        tuple[RuleSettings, ...],
        "Tried after the rules, first match wins; without a match, `ask`.",
        InFile({"type": ["array", "null"], "items": {"$ref": "#/$defs/RuleSettings"}}),
    ] = ()
    rules: Annotated[
        tuple[RuleSettings, ...],
        "Every `deny` before every `allow` before every `ask`, whatever their order.",
        InFile({"type": ["array", "null"], "items": {"$ref": "#/$defs/RuleSettings"}}),
    ] = ()
    policy_tests: Annotated[
        tuple[PolicyTest, ...],
        "Expectations that `agent-gate check` verifies.",
        InFile({"type": ["array", "null"], "items": {"$ref": "#/$defs/PolicyTest"}}),
    ] = ()


def read_permissions(root: Node, reading: Reading) -> Permissions:
    parts: dict[str, Any] = {
        "defaults": read_rules(root, "defaults", reading),
        "rules": read_rules(root, "rules", reading),
        "policy_tests": read_tests(root, reading),
    }
    return decode(root, Permissions, "", reading, **parts)


def read_rules(root: Node, key: str, reading: Reading) -> tuple[RuleSettings, ...]:
    found = root.get(key)
    return tuple(
        read_rule(node, join(key, i), reading) for i, node in enumerate(items(found, key) if found else [])
    )


def read_rule(node: Node, path: str, reading: Reading) -> RuleSettings:
    when = read_when(node, join(path, "when"))
    rule = decode(node, RuleSettings, path, reading, when=when, where=str(node.mark))
    if rule.namespace is not None and GLOB.isdisjoint(rule.namespace):
        rule = replace(rule, namespace=fold_namespace(rule.namespace))
    if rule.callers == ():
        fail(node.mark, join(path, "callers"), "names nobody; leave it out where the rule is for all agents")
    narrowing = (
        rule.namespace,
        rule.callers,
        rule.read_only,
        rule.destructive,
        rule.idempotent,
        rule.open_world,
    )
    if node.get("pattern") is None and not when and all(part is None for part in narrowing):
        fail(node.mark, path, 'names nothing to match; give a "pattern" ("*" matches everything)')
    return rule


def read_when(node: Node, path: str) -> dict[str, Any]:
    found = node.get("when")
    if found is None:
        return {}
    for key, condition in entries(found, path).items():
        check_condition(condition, join(path, key))
    plain: dict[str, Any] = found.plain()
    return plain


def check_condition(node: Node, path: str) -> None:
    """A value, a list of values, or a mapping of predicates."""
    if node.value in ({}, []):
        fail(node.mark, path, "says nothing about the argument; give a value, or leave it out")
    for key, operand in entries(node, path).items() if isinstance(node.value, dict) else ():
        if key not in PREDICATES:
            fail(node.key_mark(key), join(path, key), f"unknown predicate, use {', '.join(PREDICATES)}")
        fits = {"glob": (str,), "in": (list,)}.get(key, (int, float))
        if not isinstance(operand.value, fits) or isinstance(operand.value, bool):
            wanted = {"glob": "text", "in": "a list"}.get(key, "a number")
            fail(operand.mark, join(path, key), f"expected {wanted}, found {operand.kind}")


def read_tests(root: Node, reading: Reading) -> tuple[PolicyTest, ...]:
    found = root.get("policy_tests")
    return tuple(
        decode(node, PolicyTest, join("policy_tests", i), reading, where=str(node.mark))
        for i, node in enumerate(items(found, "policy_tests") if found else [])
    )

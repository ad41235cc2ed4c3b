"""Does a rule match a call? Each condition is one small function that says why not."""

import fnmatch
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agent_gate.core.rule import TRAIT_NAMES, Rule
from agent_gate.core.signature import CUT, pairs
from agent_gate.core.tool import Json, Tool

GLOB = re.compile(r"[*?\[]")


def compile_glob(pattern: str) -> Callable[[str], Any]:
    """A case-sensitive glob over the whole text, on every platform."""
    return re.compile(fnmatch.translate(pattern)).match


def head(pattern: str) -> str:
    """The literal text before the first wildcard."""
    return GLOB.split(pattern, maxsplit=1)[0]


def bare_possible(tool: Tool) -> bool:
    """Whether a call of this tool can have its bare name as signature."""
    if tool.definition.template is not None:
        return tool.definition.template == ""
    return not tool.input_schema.get("required")


def names_alias(pattern: str) -> bool:
    """Whether a pattern is about `namespace:name`; no wire name has a colon."""
    return ":" in pattern.partition("(")[0]


def names(pattern: str, tool: Tool) -> tuple[str, ...]:
    """The names of a tool that a pattern can mean."""
    return (tool.wire, tool.alias) if names_alias(pattern) else (tool.wire,)


def covers_every_call(pattern: str, tool: Tool) -> bool:
    """Whether `pattern` matches whatever this tool is called with."""
    return any(covers_name(pattern, name, tool) for name in names(pattern, tool))


def covers_name(pattern: str, name: str, tool: Tool) -> bool:
    if tool.definition.template == "":
        return compile_glob(pattern)(name) is not None
    start, rest = head(pattern), pattern[len(head(pattern)) :]
    if rest == "*" and f"{name}(".startswith(start):
        return not bare_possible(tool) or name.startswith(start) or start == f"{name}("
    return start == f"{name}(" and rest == "*)"


def may_match(pattern: str, tool: Tool) -> bool:
    """Whether some call of this tool could match; false only when the name alone rules it out."""
    start = head(pattern)
    if start == pattern:
        return any(pattern == name or pattern.startswith(f"{name}(") for name in names(pattern, tool))
    return any(f"{name}(".startswith(start) or start.startswith(f"{name}(") for name in names(pattern, tool))


def whole(tool: Tool, arguments: Mapping[str, Json], signature: str) -> str:
    """The signature with its long values uncut: what a rule that refuses or asks must not overlook."""
    if CUT not in signature or tool.definition.template is not None:
        return signature
    return pairs(tool.wire, arguments, longest=math.inf)


def trait_mismatch(rule: Rule, tool: Tool) -> str | None:
    """The first trait condition that does not hold.

    What a server claims for itself counts only where it makes us more careful, unless the operator trusts it.
    """
    for name in TRAIT_NAMES:
        wanted = getattr(rule, name)
        if wanted is None:
            continue
        cautious = name in ("destructive", "open_world")
        claimed: bool = getattr(tool.traits, name)
        if tool.traits.trusted:
            held = claimed
        elif cautious and not claimed and rule.action == "allow":
            return f"{name} is only the server's own claim"
        else:
            held = claimed and cautious
        if held != wanted:
            return f"the tool is {'' if held else 'not '}{name.replace('_', '-')}"
    return None


def static_mismatch(rule: Rule, tool: Tool, caller: str) -> str | None:
    """What rules this rule out for every call of `tool` by `caller`, or None."""
    if rule.namespace is not None and not fnmatch.fnmatchcase(tool.namespace, rule.namespace):
        return f"namespace is {tool.namespace}"
    if rule.callers and not any(fnmatch.fnmatchcase(caller, pattern) for pattern in rule.callers):
        return f"caller is {caller}"
    if not may_match(rule.pattern, tool):
        return "pattern names another tool"
    return trait_mismatch(rule, tool)


def predicate_holds(predicate: Any, value: Json) -> bool:
    """`when` predicates: a literal, a list of allowed values, or `{glob|in|min|max|present: …}`."""
    if isinstance(predicate, Mapping):
        return all(
            check(value, operand)
            for check, operand in ((CHECKS[name], operand) for name, operand in predicate.items())
        )
    if isinstance(predicate, list | tuple):
        return any(same(value, item) for item in predicate)
    return same(value, predicate)


def same(value: Json, wanted: Any) -> bool:
    """Equal and of one kind; 5 and 5.0 are one number, true is none."""
    alike = type(value) is type(wanted) or (number(value) and number(wanted))
    return alike and value == wanted


def number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


CHECKS: dict[str, Callable[[Json, Any], bool]] = {
    "glob": lambda value, pattern: isinstance(value, str) and compile_glob(pattern)(value) is not None,
    "in": lambda value, items: any(same(value, item) for item in items),
    "min": lambda value, low: number(value) and value >= low,
    "max": lambda value, high: number(value) and value <= high,
    "present": lambda value, wanted: (value is not None) == wanted,
}


def inside(value: Json) -> Iterator[Json]:
    """The value, and everything it holds."""
    yield value
    held = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for item in held:
        if item is not None:
            yield from inside(item)


def when_mismatch(rule: Rule, arguments: Mapping[str, Json]) -> str | None:
    """An allow rule takes a value as it is; every other rule also looks inside lists and objects."""
    for name, predicate in rule.when.items():
        value = arguments.get(name)
        seen = (value,) if rule.action == "allow" else inside(value)
        if not any(predicate_holds(predicate, one) for one in seen):
            return f"argument {name} does not fit"
    return None


def undeclared(tool: Tool, arguments: Mapping[str, Json]) -> frozenset[str]:
    """Arguments that ride along although the tool's file does not declare them."""
    declared = tool.definition.declared
    return frozenset() if declared is None else frozenset(arguments) - declared

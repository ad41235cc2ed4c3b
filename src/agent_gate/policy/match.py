"""Does a rule match a call? Each condition is one small function that says why not."""

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agent_gate.core.rule import TRAIT_NAMES, Rule
from agent_gate.core.signature import PLACEHOLDER
from agent_gate.core.tool import Json, Tool
from agent_gate.policy.accents import composed
from agent_gate.policy.globs import GAP, Family, compile_glob, cover, glob
from agent_gate.policy.names import may_match, names

CONFINED = re.compile(r"[/\\][^*?\[]*[*?\[]")
LEADS_OUT = re.compile(r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){2}(?![\w.-])", re.IGNORECASE)


def bare_possible(tool: Tool) -> bool:
    """Whether a call of this tool can have its bare name as signature."""
    if tool.definition.template is not None:
        return tool.definition.template == ""
    return not tool.input_schema.get("required")


def takes_arguments(tool: Tool) -> bool:
    schema = tool.input_schema
    some = ("properties", "patternProperties", "required")
    return schema.get("additionalProperties") is not False or any(schema.get(name) for name in some)


def family_of(tool: Tool) -> Family | None:
    """What follows a tool's name in the signatures of its calls with arguments; None where there are none."""
    template = tool.definition.template
    if template is None:
        return ("(", GAP, "=", GAP, ")") if takes_arguments(tool) else None
    pieces: list[str | None] = list(PLACEHOLDER.split(f"({template})"))
    pieces[1::2] = [GAP] * (len(pieces) // 2)
    return tuple(pieces) if template else None


def cover_every_call(patterns: Sequence[str], tool: Tool) -> bool:
    """Whether one or another of `patterns` matches whatever this tool is called with."""
    tests = [(pattern, name) for pattern in patterns for name in names(pattern, tool)]
    if bare_possible(tool) and not some_match(tests, *bare_forms(tool)):
        return False
    family = family_of(tool)
    if not tests or family is None:
        return bool(tests)
    # One example is cheap, and tells most patterns from those worth a closer look.
    if not some_match(tests, "".join(part or "x" for part in family)):
        return False
    begun = [(glob(pattern), glob(pattern).run(name)) for pattern, name in tests]
    return cover(tuple((one, state) for one, state in begun if state), family)


def some_match(tests: Sequence[tuple[str, str]], *endings: str) -> bool:
    return any(compile_glob(pattern)(name + ending) for pattern, name in tests for ending in endings)


def bare_forms(tool: Tool) -> tuple[str, ...]:
    """What follows the name where there are no arguments; without a template, `name(*)` means that too."""
    return ("", "()") if tool.definition.template is None else ("",)


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


def in_namespace(rule: Rule, tool: Tool) -> bool:
    """A rule that refuses or asks may also spell the source as the file does."""
    wanted = rule.namespace or "*"
    if fnmatch.fnmatchcase(tool.namespace, wanted):
        return True
    return rule.action != "allow" and fnmatch.fnmatchcase(tool.source, wanted)


def static_mismatch(rule: Rule, tool: Tool, caller: str) -> str | None:
    """What rules this rule out for every call of `tool` by `caller`, or None."""
    if rule.namespace is not None and not in_namespace(rule, tool):
        return f"namespace is {tool.namespace}"
    if rule.callers and not any(fnmatch.fnmatchcase(caller, pattern) for pattern in rule.callers):
        return f"caller is {caller}"
    if not may_match(rule.pattern, tool, allows=rule.action == "allow"):
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
    """The value, and everything it holds, names of members too."""
    yield value
    if isinstance(value, Mapping):
        yield from value
    held = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for item in held:
        if item is not None:
            yield from inside(item)


def confines(pattern: str) -> bool:
    """Whether a pattern reads like everything below a folder or an address."""
    return ".." not in pattern and CONFINED.search(pattern) is not None


def leads_out(value: Json) -> bool:
    """Whether a path or an address in the value goes up with `..`, so that it ends elsewhere than it begins."""
    return any(isinstance(one, str) and LEADS_OUT.search(one) for one in inside(value))


def when_mismatch(rule: Rule, arguments: Mapping[str, Json]) -> str | None:
    """An allow rule takes a value as it is; every other rule also looks inside lists and objects."""
    for name, predicate in rule.when.items():
        value = arguments.get(name)
        seen = (value,) if rule.action == "allow" else inside(composed(value))
        below = predicate.get("glob", "") if isinstance(predicate, Mapping) else ""
        if rule.action == "allow" and confines(below) and leads_out(value):
            return f"argument {name} leads out with .."
        if not any(predicate_holds(predicate, one) for one in seen):
            return f"argument {name} does not fit"
    return None

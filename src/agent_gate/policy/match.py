"""Do patterns match whatever a tool is called with?"""

from collections.abc import Sequence

from agent_gate.core.signature import PLACEHOLDER
from agent_gate.core.tool import Tool
from agent_gate.policy.globs import GAP, Family, compile_glob, cover, glob
from agent_gate.policy.names import names


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

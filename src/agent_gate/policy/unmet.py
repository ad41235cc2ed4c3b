"""Can the conditions of a rule hold for any call of a tool? A name or a value that no call can have guards nothing."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from agent_gate.core.call import encode
from agent_gate.core.rule import Rule
from agent_gate.core.tool import Json, Tool
from agent_gate.policy.match import number, predicate_holds, same


def unmet(rule: Rule, tool: Tool) -> str | None:
    """Why no call of this tool can meet the rule's `when`; None where one can, or where that cannot be told."""
    reasons = (never(rule, tool, name, predicate) for name, predicate in rule.when.items())
    return next(filter(None, reasons), None)


def never(rule: Rule, tool: Tool, name: str, predicate: Any) -> str | None:
    """A predicate that holds for an argument that is left out can hold, whatever the argument is."""
    if predicate_holds(predicate, None):
        return None
    known: Mapping[str, Any] = tool.input_schema.get("properties") or {}
    if name not in tool.declared:
        return unknown(rule, tool, name, list(dict.fromkeys([*known, *sorted(tool.declared.names)])))
    schema = known.get(name)
    if not isinstance(schema, Mapping) or (kind := schema.get("type")) not in KINDS:
        return None
    enum = schema.get("enum")
    if not possible(predicate, kind, enum):
        values = f", one of {', '.join(map(str, enum))}" if enum else ""
        return f"{name} of {tool.wire} is of type {kind}{values}, and never {encode(predicate).decode()}"
    return None


def unknown(rule: Rule, tool: Tool, name: str, known: list[str]) -> str | None:
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(known)}" if known else ""
    if tool.input_schema.get("additionalProperties") is False:
        return f"{tool.wire} has no argument {name}{hint}"
    covered = tool.definition.declared is None or name in rule.extra
    if rule.action == "allow" and not covered:
        return (
            f"{tool.wire} does not declare {name}, and an allow covers that only where `extra` names it{hint}"
        )
    return None


def possible(predicate: Any, kind: str, enum: Any) -> bool:
    """Whether a value of this kind can be what the predicate wants."""
    if isinstance(predicate, Mapping):
        return all(
            possible(operand, kind, enum) if name == "in" else kind in WANTS.get(name, KINDS)
            for name, operand in predicate.items()
        )
    wanted = predicate if isinstance(predicate, list | tuple) else [predicate]
    return any(is_of(value, kind) and (not enum or enumerated(value, enum)) for value in wanted)


def enumerated(value: Json, enum: Any) -> bool:
    """Accents may be spelled in other ways than in the file, so of such texts nothing is said."""
    return not str(value).isascii() or any(same(value, one) for one in enum)


def is_of(value: Json, kind: str) -> bool:
    if kind in ("integer", "number"):
        return number(value)
    return isinstance(value, bool if kind == "boolean" else str)


KINDS = frozenset({"string", "integer", "number", "boolean"})
WANTS = {
    "glob": frozenset({"string"}),
    "min": KINDS - {"string", "boolean"},
    "max": KINDS - {"string", "boolean"},
}

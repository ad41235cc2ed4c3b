"""The help of one tool, made from its schema."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from agent_gate.approval.render import named, visible
from agent_gate.cli.arguments import types_of

PLAIN_WORD = re.compile(r"[\w.,:=/@%+…-]+")
EXAMPLES = {"integer": "3", "number": "0.5", "boolean": "true", "array": "[]", "object": "{}"}


def tool_help(tool: Mapping[str, Any]) -> str:
    """Usage, description, arguments with the required ones first, and one example."""
    schema = tool["input_schema"]
    properties = mapping(schema.get("properties"))
    wanted = schema.get("required")
    required = [name for name in properties if isinstance(wanted, list) and name in wanted]
    optional = [name for name in properties if name not in required]
    called = f"agent-gate request {quoted(tool['name'])}"
    usage = [*(quoted(f"{name}=…") for name in required), *(f"[{quoted(f'{name}=…')}]" for name in optional)]
    lines = [f"Usage: {' '.join([called, *usage])}"]
    if tool["description"]:
        lines += ["", f"  {visible(tool['description'])}"]
    if properties:
        shown_as = {name: named(name) for name in properties}
        width = max(map(len, shown_as.values()))
        lines += ["", "Arguments:"]
        lines += [f"  {shown_as[name]:{width}}  {facts(tool, name)}" for name in [*required, *optional]]
    example = [quoted(f"{name}={value_for(schema, name)}") for name in required]
    lines += ["", "Example:", f"  {' '.join([called, *example])}"]
    return "\n".join(lines)


def quoted(word: str) -> str:
    """One word for a shell, made visible, in quotes where it needs them."""
    return visible(word if PLAIN_WORD.fullmatch(word) else shlex.quote(word))


def facts(tool: Mapping[str, Any], name: str) -> str:
    """Everything the schema says of one argument, on one line."""
    schema = tool["input_schema"]
    declared = mapping(schema["properties"][name])
    found = [visible(" or ".join(sorted(types_of(schema, name)))) or "any"]
    if isinstance(schema.get("required"), list) and name in schema["required"]:
        found.append("required")
    if isinstance(declared.get("enum"), list):
        found.append("one of " + ", ".join(map(shown, declared["enum"])))
    if "default" in declared:
        found.append(f"default {shown(declared['default'])}")
    if pattern := mapping(tool["args"].get(name)).get("validate"):
        found.append(f"matches {shown(pattern)}")
    text = ", ".join(found)
    description = visible(str(declared.get("description", "")))
    return f"{text}: {description}" if description else text


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shown(value: Any) -> str:
    return visible(plain(value))


def value_for(schema: Mapping[str, Any], name: str) -> str:
    declared = mapping(schema["properties"][name])
    for source in ("examples", "enum"):
        if isinstance(given := declared.get(source), list) and given:
            return plain(given[0])
    if "default" in declared:
        return plain(declared["default"])
    return next((EXAMPLES[kind] for kind in sorted(types_of(schema, name)) if kind in EXAMPLES), "…")

"""The help of one tool, made from its schema."""

import json
from collections.abc import Mapping
from typing import Any

from agent_gate.approval.render import visible
from agent_gate.cli.arguments import types_of

EXAMPLES = {"integer": "3", "number": "0.5", "boolean": "true", "array": "[]", "object": "{}"}


def tool_help(tool: Mapping[str, Any]) -> str:
    """Usage, description, arguments with the required ones first, and one example."""
    schema = tool["input_schema"]
    properties = schema.get("properties") or {}
    required = [name for name in properties if name in (schema.get("required") or ())]
    optional = [name for name in properties if name not in required]
    usage = [*(f"{name}=…" for name in required), *(f"[{name}=…]" for name in optional)]
    lines = [f"Usage: agent-gate request {' '.join([tool['name'], *usage])}"]
    if tool["description"]:
        lines += ["", f"  {visible(tool['description'])}"]
    if properties:
        width = max(map(len, properties))
        lines += ["", "Arguments:"]
        lines += [f"  {name:{width}}  {facts(tool, name)}" for name in [*required, *optional]]
    example = [f"{name}={value_for(schema, name)}" for name in required]
    lines += ["", "Example:", f"  agent-gate request {' '.join([tool['name'], *example])}"]
    return "\n".join(lines)


def facts(tool: Mapping[str, Any], name: str) -> str:
    """Everything the schema says of one argument, on one line."""
    schema = tool["input_schema"]
    declared = schema["properties"][name]
    declared = declared if isinstance(declared, Mapping) else {}
    found = [" or ".join(sorted(types_of(schema, name))) or "any"]
    if name in (schema.get("required") or ()):
        found.append("required")
    if "enum" in declared:
        found.append("one of " + ", ".join(map(shown, declared["enum"])))
    if "default" in declared:
        found.append(f"default {shown(declared['default'])}")
    if pattern := tool["args"].get(name, {}).get("validate"):
        found.append(f"matches {pattern}")
    text = ", ".join(found)
    description = visible(str(declared.get("description", "")))
    return f"{text}: {description}" if description else text


def shown(value: Any) -> str:
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def value_for(schema: Mapping[str, Any], name: str) -> str:
    declared = schema["properties"][name]
    if isinstance(declared, Mapping):
        for source in ("examples", "enum"):
            if declared.get(source):
                return shown(declared[source][0])
        if "default" in declared:
            return shown(declared["default"])
    return next((EXAMPLES[kind] for kind in sorted(types_of(schema, name)) if kind in EXAMPLES), "…")

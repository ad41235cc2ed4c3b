"""A `ToolDefinition` of a service into the `Definition` that the catalog takes: one JSON Schema, one template."""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import msgspec

from agent_gate.config.services.settings import ArgDefinition, ServiceConfig, ToolDefinition
from agent_gate.core.signature import placeholders
from agent_gate.core.tool import Definition
from agent_gate.core.traits import TRAITS

NO_PATTERN = "(no * ? [ ] ( ) , or line breaks)"


def to_definition(service: ServiceConfig, tool: ToolDefinition) -> Definition:
    """What agents see of `tool`, and what its calls are held to. What the operator wrote is trusted."""
    return Definition(
        name=tool.name,
        description=tool.description,
        input_schema=input_schema(tool),
        traits=tool.traits,
        annotations=annotations(tool),
        tags=tool.tags,
        flat=True,
        template=tool.signature,
        strict=True,
        declared=frozenset(tool.args),
        text=frozenset(name for name, arg in tool.args.items() if arg.text),
        secret=frozenset(name for name, arg in tool.args.items() if holds_secret(arg)),
        patterns={name: arg.validate for name, arg in tool.args.items() if arg.validate is not None},
        timeout=tool.timeout if tool.timeout is not None else service.timeout,
        ask=tool.ask,
        budget=tool.budget,
        record=tool.record,
        effect=sha256(msgspec.json.encode(tool.request, order="sorted")).hexdigest(),
    )


def holds_secret(arg: ArgDefinition) -> bool:
    """Whether any part of it is secret; then nothing of it is shown."""
    parts = [*(arg.properties or {}).values(), *([arg.items] if arg.items is not None else [])]
    return arg.secret or any(holds_secret(part) for part in parts)


def input_schema(tool: ToolDefinition) -> dict[str, Any]:
    """What the path names is required, said or not: without it there is no request, so nobody is asked."""
    path = placeholders(tool.request.path) if tool.request is not None else []
    args = {
        name: replace(arg, required=True) if name in path and arg.default is None else arg
        for name, arg in tool.args.items()
    }
    schema = object_schema(args, open_ended=tool.open_args)
    for name, arg in args.items():
        if takes_no_pattern(arg):
            described = schema["properties"][name]
            described["description"] = f"{described.get('description', '')} {NO_PATTERN}".strip()
    return schema


def takes_no_pattern(arg: ArgDefinition) -> bool:
    """Whether a sentence could be tried that is then refused for its characters."""
    return arg.type == "string" and not arg.text and arg.enum is None and arg.validate is None


def object_schema(args: Mapping[str, ArgDefinition], *, open_ended: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: arg_schema(arg) for name, arg in args.items()},
    }
    required = [name for name, arg in args.items() if arg.required]
    if required:
        schema["required"] = required
    if not open_ended:
        schema["additionalProperties"] = False
    return schema


def arg_schema(arg: ArgDefinition) -> dict[str, Any]:
    if arg.properties is not None:
        schema = object_schema(arg.properties, open_ended=False)
    else:
        schema = {"type": arg.type}
    if arg.description:
        schema["description"] = arg.description
    if arg.validate is not None:
        schema["pattern"] = anchored(arg.validate)
    if arg.enum is not None:
        schema["enum"] = list(arg.enum)
    if arg.default is not None:
        schema["default"] = arg.default
    if arg.items is not None:
        schema["items"] = arg_schema(arg.items)
    return schema


def anchored(pattern: str) -> str:
    """The expression so that it matches the whole text; alternatives stay together inside the group."""
    whole = (
        pattern.startswith("^")
        and pattern.endswith("$")
        and not pattern.endswith("\\$")
        and "|" not in pattern
    )
    return pattern if whole else f"^(?:{pattern})$"


def annotations(tool: ToolDefinition) -> dict[str, Any]:
    """The traits in MCP's words, all of them, because an absent hint is read as the worst case."""
    return {trait.hint: getattr(tool, name) for name, trait in TRAITS.items()}

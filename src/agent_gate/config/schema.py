"""The settings classes into JSON Schema, for editors and for `agent-gate schema`."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from agent_gate.approval.channels.registry import CHANNELS
from agent_gate.config.channels import person_keys
from agent_gate.config.kinds import sections
from agent_gate.config.permissions import Permissions, PolicyTest
from agent_gate.config.settings import (
    AgentSettings,
    Person,
    RateLimitSettings,
    Settings,
)
from agent_gate.config.shape import Field, also, shape
from agent_gate.policy.rule import Rule

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", Path: "string"}
VARIABLE = {"type": "string", "pattern": r"\$\{[^}]*\}"}
NAMED: tuple[type, ...] = (
    AgentSettings,
    Person,
    PolicyTest,
    RateLimitSettings,
    Rule,
)


def config_schema() -> dict[str, Any]:
    root = object_schema(Settings)
    for section in sections():
        root["properties"] |= {
            key: {"description": one.doc, **one.schema} for key, one in section.keys.items()
        }
    return document("config.yaml of agent-gate", root)


def permissions_schema() -> dict[str, Any]:
    return document("permissions.yaml of agent-gate", object_schema(Permissions))


def tools_schema() -> dict[str, Any]:
    tools = {"type": ["object", "null"], "additionalProperties": {"$ref": "#/$defs/ToolDefinition"}}
    root = {"type": ["object", "null"], "additionalProperties": False, "properties": {"tools": tools}}
    return document("A tool file of agent-gate", root)


SCHEMAS = {"config": config_schema, "permissions": permissions_schema, "tools": tools_schema}


def named() -> tuple[type, ...]:
    """The classes that schemas refer to by name."""
    return (*NAMED, *(cls for section in sections() for cls in section.classes))


def document(title: str, root: Mapping[str, Any]) -> dict[str, Any]:
    """`root` with the definitions that it uses, however deep."""
    definitions = {cls.__name__: object_schema(cls) for cls in named()} | {"Channel": channel_schema()}
    definitions["Person"]["properties"] |= {
        key: {"description": one.doc, **type_schema(one.type)} for key, one in person_keys().items()
    }
    wanted: dict[str, Any] = {}
    queue = references(root)
    while queue:
        name = queue.pop()
        if name not in wanted:
            wanted[name] = definitions[name]
            queue += references(definitions[name])
    return {"$schema": DIALECT, "title": title, **root, "$defs": dict(sorted(wanted.items()))}


def references(schema: Any) -> list[str]:
    """The names of all definitions that a schema points at."""
    if isinstance(schema, Mapping):
        here = [str(schema["$ref"]).rpartition("/")[2]] if "$ref" in schema else []
        return here + [name for value in schema.values() for name in references(value)]
    if isinstance(schema, (list, tuple)):
        return [name for value in schema for name in references(value)]
    return []


def object_schema(cls: type) -> dict[str, Any]:
    properties = {each.name: property_schema(each) for each in shape(cls) if not each.given}
    properties |= {key: {"description": extra.doc, **extra.schema} for key, extra in also(cls).items()}
    required = [each.name for each in shape(cls) if each.required and not each.given]
    schema: dict[str, Any] = {
        "description": (cls.__doc__ or "").strip(),
        "type": ["object", "null"] if not required else "object",
        "additionalProperties": False,
        "properties": properties,
    }
    return {**schema, "required": required} if required else schema


def channel_schema() -> dict[str, Any]:
    """A channel of any kind; its keys stand beside `type`, or below the name of the kind."""
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"description": "Kind of channel.", "enum": list(CHANNELS)}},
        "allOf": [
            {
                "if": {"properties": {"type": {"const": name}}},
                "then": {
                    "properties": {"type": {}, name: {"type": "object"}, **own},
                    "additionalProperties": False,
                },
            }
            for name, kind in CHANNELS.items()
            for own in [object_schema(kind.settings)["properties"]]
        ],
    }


def property_schema(each: Field) -> dict[str, Any]:
    schema = dict(each.in_file.schema) if each.in_file is not None else type_schema(each.type)
    described: dict[str, Any] = {"description": each.doc, **schema}
    if each.at_least is not None:
        described["minimum"] = each.at_least
    if each.at_most is not None:
        described["maximum"] = each.at_most
    if isinstance(each.default, (str, int, float, bool)):
        described["default"] = each.default
    elif isinstance(each.default, Path):
        described["default"] = str(each.default)
    return described


def type_schema(kind: Any) -> dict[str, Any]:
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if kind in SCALARS:
        return scalar_schema(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [type_schema(part) for part in parts]}
    if kind is NoneType:
        return {"type": "null"}
    if origin is Literal:
        return {"anyOf": [{"enum": list(parts)}, VARIABLE]}
    if origin is tuple:
        return {"type": ["array", "null"], "items": type_schema(parts[0])}
    if is_dataclass(kind) and isinstance(kind, type):
        return {"$ref": f"#/$defs/{kind.__name__}"} if kind in named() else object_schema(kind)
    return {"type": ["object", "null"], "additionalProperties": type_schema(parts[1])}


def scalar_schema(kind: Any) -> dict[str, Any]:
    """A scalar, or for anything but text also a variable that stands for one."""
    plain = {"type": SCALARS[kind]}
    return plain if plain["type"] == "string" else {"anyOf": [plain, VARIABLE]}

"""JSON Schemas of an OpenAPI document into the arguments of a tool file.

A tool file says less than JSON Schema: what it has no words for is left to the service, which checks its input anyway.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from agent_gate.config.openapi.document import OpenApiDocument, Schema, items, mapping, words
from agent_gate.config.services.tools import runs_in_linear_time
from agent_gate.core.schema import compile_schema
from agent_gate.core.signature import written
from agent_gate.core.validate import forbidden_argument

TYPES = ("string", "integer", "number", "boolean", "array", "object")
SCALARS = TYPES[:4]
DEEPEST = 5
MOST_PARTS = 200
LONGEST = 300
IS_VALID = {kind: compile_schema({"type": kind}).is_valid for kind in SCALARS}
PLAIN = frozenset({"date", "date-time", "time", "uuid", "email", "ipv4", "hostname"})
TOLD = PLAIN | {"uri", "url", "byte", "ipv6"}
"""Formats that an agent is told of; `PLAIN` ones never hold what rules match by."""


class FileArgument(NamedTuple):
    """An argument as a tool file says it. `free`: some part of it can be any text."""

    said: dict[str, Any]
    free: bool = False

    @property
    def type(self) -> str:
        return str(self.said["type"])


class Members(NamedTuple):
    """What an object has; `open` where it takes others too."""

    schemas: dict[str, Schema]
    required: frozenset[str]
    open: bool


class Arguments:
    """Reads the schemas of one tool. Of what is deep, or too much for an agent to read, only the type is said."""

    def __init__(self, document: OpenApiDocument) -> None:
        self._document = document
        self._parts = 0

    def read(self, schema: Any, *, required: bool, description: str = "", text: bool = True) -> FileArgument:
        """One argument. `text` where it may be free text, which has no place in a path or a header."""
        said, free = self._read(schema, 0)
        if description:
            said["description"] = described(description, schema)
        if required:
            said["required"] = True
        if free and text:
            said["text"] = True
        if not text and holds_forbidden(said.get("enum")):
            del said["enum"]
        return FileArgument(said, free)

    def members(self, schema: Any) -> Members | None:
        """The members of an object; None for anything else, and for one that names none."""
        whole = self._whole(schema, 0)
        if type_of(whole) != "object" or not mapping(whole.get("properties")):
            return None
        schemas = {str(name): self._document.follow(each) for name, each in whole["properties"].items()}
        schemas = {name: each for name, each in schemas.items() if each.get("readOnly") is not True}
        others = whole.get("additionalProperties")
        required = frozenset(map(str, items(whole.get("required"))))
        return Members(schemas, required, others is True or bool(mapping(others)))

    def _whole(self, schema: Any, depth: int) -> Schema:
        """The schema with its reference followed and its parts joined; where it leaves a choice, all at once."""
        found = self._document.follow(schema)
        if depth > DEEPEST:
            return found
        for part in items(found.get("allOf")):
            found = joined(found, self._whole(part, depth + 1))
        for key in "oneOf", "anyOf":
            ways = [self._whole(way, depth + 1) for way in items(found.get(key))]
            if ways := [way for way in ways if type_of(way) != "null"]:
                found = joined(found, one_of(ways))
        return found

    def _read(self, schema: Any, depth: int) -> FileArgument:
        whole = self._whole(schema, 0)
        kind = type_of(whole)
        said: dict[str, Any] = {"type": kind if kind in TYPES else "string"}
        if text := described("", whole):
            said["description"] = text
        if whole.get("format") == "password":
            said["secret"] = True
        self._parts += 1
        parts = list(self._add_parts(said, whole, depth)) if self._has_room(whole, depth) else []
        add_values(said, whole)
        free = any(part.free for part in parts) or holds_forbidden(said.get("enum"))
        if said["type"] == "string":
            free |= "enum" not in said and "validate" not in said and str(whole.get("format")) not in PLAIN
        return FileArgument(said, free or (said["type"] not in SCALARS and not parts))

    def _has_room(self, whole: Schema, depth: int) -> bool:
        return depth < DEEPEST and self._parts + len(mapping(whole.get("properties"))) <= MOST_PARTS

    def _add_parts(self, said: dict[str, Any], whole: Schema, depth: int) -> Iterable[FileArgument]:
        if said["type"] == "array" and mapping(whole.get("items")):
            part = self._read(whole["items"], depth + 1)
            said["items"] = part.said
            yield part
        elif said["type"] == "object" and (members := self.members(whole)) is not None:
            said["properties"] = {}
            for name, schema in members.schemas.items():
                part = self._read(schema, depth + 1)
                if name in members.required:
                    part.said["required"] = True
                said["properties"][name] = part.said
                yield part


def type_of(schema: Schema) -> str:
    """The type that a schema names or implies; `null` beside another one counts for nothing."""
    named = schema.get("type")
    if isinstance(named, list):
        named = next((one for one in named if one != "null"), "null")
    if isinstance(named, str):
        return named
    if mapping(schema.get("properties")) or "additionalProperties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    values = [*items(schema.get("enum")), *([schema["const"]] if "const" in schema else [])]
    for kind, python in ("boolean", bool), ("integer", int), ("number", float):
        if values and all(isinstance(value, python) for value in values):
            return kind
    return "string"


def joined(first: Schema, second: Schema) -> Schema:
    """Both schemas at once; of what both say, the first is kept."""
    found = {**second, **first}
    if "properties" in first and "properties" in second:
        found["properties"] = {**mapping(second["properties"]), **mapping(first["properties"])}
    needed = dict.fromkeys(map(str, (*items(first.get("required")), *items(second.get("required")))))
    if needed:
        found["required"] = list(needed)
    return found


def one_of(ways: list[Schema]) -> Schema:
    """One schema for all ways: the members of every object, the values of every list. Of several types the first counts."""
    kinds = {type_of(way) for way in ways}
    if len(ways) == 1 or len(kinds) > 1:
        return ways[0]
    [kind] = kinds
    if kind == "object":
        parts = [mapping(way.get("properties")) for way in ways]
        return {"type": kind, "properties": {name: each for part in parts for name, each in part.items()}}
    if kind in SCALARS and all("enum" in way or "const" in way for way in ways):
        values = [value for way in ways for value in items(way.get("enum")) or [way.get("const")]]
        return {"type": kind, "enum": list(dict.fromkeys(values))}
    return {"type": kind}


def described(text: str, schema: Schema) -> str:
    """What an argument is, with the limits that a tool file has no words for.

    A default is only told: filled in by the gateway it would also be sent where a part is to stay as it is.
    """
    limits = [form] if (form := str(schema.get("format"))) in TOLD else []
    low, high = number(schema.get("minimum")), number(schema.get("maximum"))
    if low is not None and high is not None:
        limits.append(f"{low} to {high}")
    elif low is not None or high is not None:
        limits.append(f"at least {low}" if low is not None else f"at most {high}")
    if isinstance(default := schema.get("default"), str | int | float) and default != "":
        limits.append(f"default {words(written(default))[:60]}")
    said = shortened(text or words(schema.get("description") or schema.get("title")), LONGEST)
    return " ".join(filter(None, (said, f"({', '.join(limits)})" if limits else "")))


def number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def shortened(text: str, most: int) -> str:
    """The text, or as many of its words as fit."""
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0].rstrip(" ,.;:") + " …"


def add_values(said: dict[str, Any], schema: Schema) -> None:
    """The values it takes, or what it must match, as far as a call could have them."""
    if said["type"] not in SCALARS:
        return
    values = (
        [schema["const"]] if "const" in schema else [v for v in items(schema.get("enum")) if v is not None]
    )
    pattern = schema.get("pattern")
    if values and all(fits(said["type"], value) for value in values):
        said["enum"] = values
    elif said["type"] == "string" and isinstance(pattern, str) and "${" not in pattern:
        whole = pattern.startswith("^") and pattern.endswith("$") and not pattern.endswith("\\$")
        if whole and runs_in_linear_time(pattern):
            said["validate"] = pattern


def fits(kind: str, value: Any) -> bool:
    """Whether a value is of that type, and can stand in a file."""
    return not (isinstance(value, str) and "${" in value) and IS_VALID[kind](value)


def holds_forbidden(value: Any) -> bool:
    """Whether it holds what only free text may hold."""
    return forbidden_argument({"value": value}, frozenset()) is not None

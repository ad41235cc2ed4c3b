"""Lets a handle stand for its result in another tool's arguments, so that large data skips the model.

A text argument that is exactly a handle, optionally with a JSONPath after `#` (`result:…#$.rows[0:10]`), is
replaced before the arguments are validated. It becomes the JSON value where the schema asks for one, and the
text otherwise.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from agent_gate.core.tool import Json, JsonSchema
from agent_gate.errors import InvalidArgs
from agent_gate.results.jsonpath import select
from agent_gate.results.reading import ResultReading, compact

HANDLE = re.compile(r"result:(?P<call>[0-9a-f]{32})")
GONE = "There is no such artifact, or it has expired. Call the tool again."
MOST_BYTES = 64 << 20
"""Of several results together that one call refers to."""
TOO_LARGE = "The results behind these handles are too large together. Pass fewer, or parts of them."
STRUCTURED = frozenset({"object", "array", "number", "integer", "boolean"})
MOST_REFERENCES = 32


class Room:
    """How much the references of one call may bring in together: a short request must not become a huge one."""

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, value: Json) -> None:
        self.left -= len(value) if isinstance(value, str) else len(msgspec.json.encode(value))
        if self.left < 0:
            raise InvalidArgs(TOO_LARGE)


def find_handles(arguments: Json) -> set[str]:
    """The handles that the arguments mention as whole values."""
    references = list(islice(_references(arguments), MOST_REFERENCES + 1))
    if len(references) > MOST_REFERENCES:
        raise InvalidArgs(
            f"Too many handles: one call may mention {MOST_REFERENCES}. Make several calls of it."
        )
    return {reference.partition("#")[0] for reference in references}


def _references(value: Json) -> Iterator[str]:
    if isinstance(value, str) and is_reference(value):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _references(inner)


def is_reference(text: str) -> bool:
    handle, mark, path = text.partition("#")
    return bool(HANDLE.fullmatch(handle)) and (not mark or path.startswith("$"))


def substitute(
    arguments: Mapping[str, Json], schema: JsonSchema, readings: Mapping[str, ResultReading]
) -> dict[str, Json]:
    """The arguments with every reference replaced by what it stands for."""
    room = Room(MOST_BYTES)
    return {name: _fill(value, _property(schema, name), readings, room) for name, value in arguments.items()}


def _fill(value: Json, schema: JsonSchema, readings: Mapping[str, ResultReading], room: Room) -> Json:
    if isinstance(value, str) and is_reference(value):
        return _meaning(value, schema, readings, room)
    if isinstance(value, dict):
        return {key: _fill(inner, _property(schema, key), readings, room) for key, inner in value.items()}
    if isinstance(value, list):
        items = schema.get("items")
        below = items if isinstance(items, dict) else {}
        return [_fill(inner, below, readings, room) for inner in value]
    return value


def _property(schema: JsonSchema, name: str) -> JsonSchema:
    properties = schema.get("properties")
    found = properties.get(name) if isinstance(properties, dict) else None
    return found if isinstance(found, dict) else {}


def _meaning(reference: str, schema: JsonSchema, readings: Mapping[str, ResultReading], room: Room) -> Json:
    handle, _, path = reference.partition("#")
    reading = readings[handle]
    if not path:
        value: Any = reading.value if reading.is_json else reading.text
        room.take(value)
    elif not reading.is_json:
        raise InvalidArgs("The result behind this handle is not JSON; pass the handle without a path.")
    else:
        value = _selected(reading.value, path, room)
    if isinstance(value, str) or takes_structure(schema):
        return value
    return reading.said if reading.said is not None and not path else compact(value)


def _selected(value: Json, path: str, room: Room) -> Json:
    found = []
    for _, inner in select(value, path):
        room.take(inner)
        found.append(inner)
    if not found:
        raise InvalidArgs(f"Nothing is at {path} in the result behind this handle.")
    return found[0] if len(found) == 1 else found


def takes_structure(schema: JsonSchema) -> bool:
    """Whether a schema asks for something other than text. One that says nothing takes anything."""
    kinds = schema.get("type")
    if kinds is None:
        parts = [part for key in ("anyOf", "oneOf") for part in schema.get(key, ()) if isinstance(part, dict)]
        return any(takes_structure(part) for part in parts) if parts else True
    return bool(STRUCTURED & set([kinds] if isinstance(kinds, str) else kinds))

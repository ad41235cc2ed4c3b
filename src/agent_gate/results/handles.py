"""Lets a handle stand for its result in another tool's arguments, so that large data skips the model.

A text argument that is exactly a handle, optionally with a JSONPath after `#` (`result:…#$.rows[0:10]`), is
replaced before the arguments are validated. It becomes the JSON value where the schema asks for one, and the
text otherwise.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agent_gate.core.tool import Json, JsonSchema
from agent_gate.errors import InvalidArgs
from agent_gate.results.artifacts import HANDLE
from agent_gate.results.jsonpath import select
from agent_gate.results.reading import Reading, compact

STRUCTURED = frozenset({"object", "array", "number", "integer", "boolean"})


def find_handles(arguments: Json) -> set[str]:
    """The handles that the arguments mention as whole values."""
    return {reference.partition("#")[0] for reference in _references(arguments)}


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
    arguments: Mapping[str, Json], schema: JsonSchema, readings: Mapping[str, Reading]
) -> dict[str, Json]:
    """The arguments with every reference replaced by what it stands for."""
    return {name: _fill(value, _property(schema, name), readings) for name, value in arguments.items()}


def _fill(value: Json, schema: JsonSchema, readings: Mapping[str, Reading]) -> Json:
    if isinstance(value, str) and is_reference(value):
        return _meaning(value, schema, readings)
    if isinstance(value, dict):
        return {key: _fill(inner, _property(schema, key), readings) for key, inner in value.items()}
    if isinstance(value, list):
        items = schema.get("items")
        below = items if isinstance(items, dict) else {}
        return [_fill(inner, below, readings) for inner in value]
    return value


def _property(schema: JsonSchema, name: str) -> JsonSchema:
    properties = schema.get("properties")
    found = properties.get(name) if isinstance(properties, dict) else None
    return found if isinstance(found, dict) else {}


def _meaning(reference: str, schema: JsonSchema, readings: Mapping[str, Reading]) -> Json:
    handle, _, path = reference.partition("#")
    reading = readings[handle]
    if not path:
        value: Any = reading.value if reading.is_json else reading.text
    elif not reading.is_json:
        raise InvalidArgs("The result behind this handle is not JSON; pass the handle without a path.")
    else:
        value = _selected(reading.value, path)
    if isinstance(value, str) or takes_structure(schema):
        return value
    return reading.said if reading.said is not None and not path else compact(value)


def _selected(value: Json, path: str) -> Json:
    found = [inner for _, inner in select(value, path)]
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

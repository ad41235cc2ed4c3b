"""Arguments from the command line: `key=value` read by the tool's schema, `key:=json` as it stands, `@file`, `-`."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_gate.core.strict import parse
from agent_gate.errors import InvalidArgs

FORMAT = "Invalid argument format"
HELP = "Write key=value, key:=json, @file with a JSON object, or - to read one from standard input"


def fault(item: str) -> InvalidArgs:
    return InvalidArgs(f"{FORMAT}: {item[:80]!r}\n{HELP}")


def types_of(schema: Mapping[str, Any] | None, name: str) -> set[str]:
    properties = (schema or {}).get("properties") or {}
    given = properties.get(name, {}).get("type", []) if isinstance(properties.get(name), Mapping) else []
    return {given} if isinstance(given, str) else set(given)


def coerced(text: str, types: set[str]) -> Any:
    """The text as the first type that fits; a string wherever a string is wanted."""
    if not types or "string" in types:
        return text
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    if "null" in types and text == "null":
        return None
    for kind, convert in (("integer", int), ("number", float)):
        if kind in types:
            try:
                return convert(text)
            except ValueError:
                continue
    if types & {"array", "object"}:
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def whole(text: str, item: str) -> dict[str, Any]:
    value = parse(text)
    if not isinstance(value, dict):
        raise fault(item)
    return value


def one(item: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    if item == "-":
        return whole(sys.stdin.read(), item)
    if item.startswith("@"):
        try:
            return whole(Path(item[1:]).read_text(encoding="utf-8"), item)
        except OSError as error:
            raise InvalidArgs(f"{FORMAT}: {item[:80]} cannot be read ({error.strerror})") from None
    name, found, value = item.partition("=")
    if not found or name in ("", ":"):
        raise fault(item)
    if not name.endswith(":"):
        return {name: coerced(value, types_of(schema, name))}
    try:
        return {name[:-1]: parse(value)}
    except InvalidArgs:
        raise InvalidArgs(f"{FORMAT}: the value of {name[:-1]} is not JSON\n{HELP}") from None


def parse_arguments(items: Sequence[str], schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """All items together; a later one wins over an earlier one of the same name."""
    out: dict[str, Any] = {}
    for item in items:
        out |= one(item, schema)
    return out

"""Arguments from the command line: `key=value` read by the tool's schema, `key:=json` as it stands, `@file`, `-`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_gate.core.strict import parse
from agent_gate.errors import InvalidArgs

FORMAT = "Invalid argument format"
BYTE_ORDER_MARK = "\ufeff"
HELP = "Write key=value, key:=json, @file with a JSON object, or - to read one from standard input"


def fault(item: str) -> InvalidArgs:
    return InvalidArgs(f"{FORMAT}: {item[:80]!r}\n{HELP}")


def types_of(schema: Mapping[str, Any] | None, name: str) -> set[str]:
    """The JSON types an argument may have, as far as its schema says so."""
    properties = (schema or {}).get("properties")
    declared = properties.get(name) if isinstance(properties, Mapping) else None
    return declared_types(declared, schema or {}, 0)


def declared_types(declared: Any, root: Mapping[str, Any], depth: int) -> set[str]:
    if not isinstance(declared, Mapping) or depth > 8:
        return set()
    reference = declared.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        return declared_types(referenced(root, reference), root, depth + 1)
    given = declared.get("type")
    if given is not None:
        return {kind for kind in (given if isinstance(given, list) else [given]) if isinstance(kind, str)}
    lists = (declared.get(key) for key in ("anyOf", "oneOf"))
    choices = [choice for found in lists if isinstance(found, list) for choice in found]
    return set().union(*(declared_types(choice, root, depth + 1) for choice in choices))


def referenced(root: Mapping[str, Any], reference: str) -> Any:
    found: Any = root
    for part in reference[2:].split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def coerced(text: str, types: set[str]) -> Any:
    """The text as the JSON value that fits one of the types; a string wherever a string is wanted."""
    if not types or "string" in types:
        return text
    try:
        value = parse(text)
    except InvalidArgs:
        return text
    return value if kind_of(value) & types else text


def kind_of(value: Any) -> set[str]:
    """The names of the JSON types that a value has; a whole number is both."""
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int):
        return {"integer", "number"}
    names = {float: "number", str: "string", list: "array", dict: "object", type(None): "null"}
    return {names[type(value)]}


def whole(text: str, origin: str) -> dict[str, Any]:
    try:
        value = parse(text.removeprefix(BYTE_ORDER_MARK))
    except InvalidArgs:
        raise InvalidArgs(f"{FORMAT}: {origin} is not JSON\n{HELP}") from None
    if not isinstance(value, dict):
        raise InvalidArgs(f"{FORMAT}: {origin} is not a JSON object\n{HELP}")
    return value


def standard_input() -> str:
    """All of it; a process can be started without any."""
    return unicode(sys.stdin.read(), "standard input") if sys.stdin is not None else ""


def unicode(text: str, origin: str) -> str:
    """Bytes that are not UTF-8 come from the shell as lone surrogates, which JSON cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgs(f"{FORMAT}: {origin} is not UTF-8") from None
    return text


def one(item: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    if item == "-":
        return whole(standard_input(), "standard input")
    if item.startswith("@"):
        try:
            return whole(Path(item[1:]).read_text(encoding="utf-8"), item[:80])
        except UnicodeDecodeError:
            raise InvalidArgs(f"{FORMAT}: {item[:80]} is not UTF-8") from None
        except OSError as error:
            raise InvalidArgs(f"{FORMAT}: {item[:80]} cannot be read ({error.strerror})") from None
    name, found, value = item.partition("=")
    if not found or name in ("", ":"):
        raise fault(item)
    unicode(item, repr(name[:80]))
    if not name.endswith(":"):
        return {name: coerced(value, types_of(schema, name))}
    try:
        return {name[:-1]: parse(value)}
    except InvalidArgs:
        raise InvalidArgs(f"{FORMAT}: the value of {name[:-1]} is not JSON\n{HELP}") from None


def plain_names(items: Sequence[str]) -> list[str]:
    """The arguments whose last word is a `key=value`, which the schema may read as another type."""
    plain: dict[str, bool] = {}
    for item in items:
        name, found, _ = item.partition("=")
        if found and not item.startswith("@"):
            plain[name.removesuffix(":")] = not name.endswith(":")
    return [name for name, is_plain in plain.items() if is_plain]


def parse_arguments(items: Sequence[str], schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """All items together; a later one wins over an earlier one of the same name."""
    out: dict[str, Any] = {}
    for item in items:
        out |= one(item, schema)
    return out

"""The headers in which the 2026-07-28 revision repeats parts of a request; each must say what the body says."""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from typing import Any

from agent_gate.core.tool import Json, Tool
from agent_gate.net.http import Request
from agent_gate.surfaces.mcp.wire import HEADER_MISMATCH, RpcError

NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
SENTINEL = re.compile(rb"=\?base64\?(.*)\?=")
DECIMAL = re.compile(r"-?[0-9]{1,40}(\.0+)?")
ANNOTATION = "x-mcp-header"
MOST_REMEMBERED = 10_000

Path = tuple[str, ...]
Mirrors = tuple[tuple[Path, bytes, str], ...]
"""For each mirrored argument: where it stands, its header's name, and its declared type."""


def mismatch(header: str, why: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"Header mismatch: {header} {why}")


def header_text(value: bytes | None) -> str | None:
    """A header's value with its base64 wrapping undone; None where it is absent or broken."""
    if value is None:
        return None
    wrapped = SENTINEL.fullmatch(value)
    try:
        return (b64decode(wrapped[1], validate=True) if wrapped else value).decode("utf-8")
    except (NotBase64, UnicodeDecodeError):
        return None


def check_routing(request: Request, method: str, name: Json) -> None:
    """`Mcp-Method` and `Mcp-Name` against the body; `name` None means that the method has none."""
    if request.header(b"mcp-method") != method.encode():
        raise mismatch("Mcp-Method", "does not repeat the body's method")
    if isinstance(name, str):
        said = request.header(b"mcp-name")
        if said != name.encode() and header_text(said) != name:
            raise mismatch("Mcp-Name", "does not repeat the name or uri in the body's params")


def mirrored(schema: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, bytes, str]]:
    """The annotated arguments of a schema, along `properties` only."""
    properties = schema.get("properties")
    for name, sub in properties.items() if isinstance(properties, dict) else ():
        if isinstance(sub, dict) and len(path) < 16:
            header = sub.get(ANNOTATION)
            if isinstance(header, str) and header.isascii():
                yield (*path, name), b"mcp-param-" + header.lower().encode(), str(sub.get("type"))
            yield from mirrored(sub, (*path, name))


class ParamHeaders:
    """Checks `Mcp-Param-` headers; which ones a tool has is found once per definition."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Mirrors] = {}

    def check(self, request: Request, tool: Tool, arguments: Mapping[str, Json]) -> None:
        mirrors = self._known.get((tool.id, tool.pin))
        if mirrors is None:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            mirrors = self._known[tool.id, tool.pin] = tuple(mirrored(tool.input_schema))
        for path, header, kind in mirrors:
            if not agrees(request.header(header), value_at(arguments, path), kind):
                raise mismatch(header.decode(), f"does not repeat the argument {'.'.join(path)}")


def value_at(arguments: Json, path: Path) -> Json:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, Mapping) else None
    return arguments


def agrees(header: bytes | None, value: Json, kind: str) -> bool:
    """Present together and equal, or absent together."""
    if value is None or not isinstance(value, str | int | float):
        return header is None
    said = header_text(header)
    if said is None:
        return False
    if kind == "integer" and not isinstance(value, bool | str) and DECIMAL.fullmatch(said):
        return int(said.partition(".")[0]) == value
    return said == (str(value).lower() if isinstance(value, bool) else str(value))

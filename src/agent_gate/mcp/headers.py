"""The protocol's HTTP headers: their names, the wrapping of values, and the arguments that a header repeats."""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

SESSION = "Mcp-Session-Id"
VERSION = "MCP-Protocol-Version"
METHOD = "Mcp-Method"
NAME = "Mcp-Name"
PARAM = "Mcp-Param-"
LAST_EVENT = "Last-Event-ID"
JSON = "application/json"
EVENT_STREAM = "text/event-stream"
ACCEPT = f"{JSON}, {EVENT_STREAM}"

ANNOTATION = "x-mcp-header"
DEEPEST = 16
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
PLAIN = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
WRAPPED = re.compile(r"=\?base64\?(.*)\?=")

Path = tuple[str, ...]


def field(name: str) -> bytes:
    """A header's name as a request that was read has it."""
    return name.lower().encode()


class Mirror(NamedTuple):
    """An argument that a header repeats: where it stands, the header's name, and the argument's declared type."""

    path: Path
    header: str
    kind: str


def wrap(text: str) -> str:
    """A value as a header can carry it: as it is, or in base64."""
    if PLAIN.fullmatch(text) and not WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{b64encode(text.encode('utf-8', 'surrogatepass')).decode('ascii')}?="


def unwrap(value: bytes | None) -> str | None:
    """What a header says; None where it is absent or broken."""
    if value is None:
        return None
    try:
        text = value.decode()
        wrapped = WRAPPED.fullmatch(text)
        return b64decode(wrapped[1], validate=True).decode() if wrapped else text
    except (NotBase64, UnicodeError, ValueError):
        return None


def mirrors(schema: Any, path: Path = ()) -> Iterator[Mirror]:
    """The annotated arguments of a tool's input schema, along `properties` only."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for name, sub in properties.items() if isinstance(properties, Mapping) and len(path) < DEEPEST else ():
        if isinstance(sub, Mapping):
            header = sub.get(ANNOTATION)
            if isinstance(header, str) and TOKEN.fullmatch(header):
                yield Mirror((*path, name), PARAM + header, str(sub.get("type")))
            yield from mirrors(sub, (*path, name))


def value_at(arguments: Any, path: Path) -> Any:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, Mapping) else None
    return arguments


def plain_text(value: Any) -> str | None:
    """An argument as its header says it; None for what no header can say."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None

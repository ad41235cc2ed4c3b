"""JSON-RPC messages as bytes: what they are, what their headers must repeat, and a key put into one unseen."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

MODERN = "io.modelcontextprotocol/protocolVersion"
KEY = "agent-gate/idempotency-key"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
SPACE = re.compile(rb"[ \t\r\n]*")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
SKIPPED = re.compile(rb'[^"{}\[\]]+')
BRACKET = re.compile(rb"[{}\[\]]")
SCALAR = re.compile(rb"[^,}\]\s]+")
PLAIN = re.compile(r"[!-~](?:[ -~]*[!-~])?")
WRAPPED = re.compile(r"=\?base64\?.*\?=")


class Message(NamedTuple):
    """One message from the host: its bytes as they came, and what was read from them."""

    raw: bytes
    body: Mapping[str, Any]

    @property
    def method(self) -> str:
        return str(self.body.get("method", ""))

    @property
    def is_request(self) -> bool:
        return "method" in self.body and "id" in self.body

    @property
    def id(self) -> Any:
        return self.body.get("id")

    @property
    def params(self) -> Mapping[str, Any]:
        found = self.body.get("params")
        return found if isinstance(found, Mapping) else {}

    @property
    def meta(self) -> Mapping[str, Any]:
        found = self.params.get("_meta")
        return found if isinstance(found, Mapping) else {}

    @property
    def revision(self) -> str | None:
        """The protocol revision that a modern request carries in itself."""
        found = self.meta.get(MODERN)
        return found if isinstance(found, str) else None


def read(line: bytes) -> Message:
    """A line from the host; `ValueError` where it is no JSON object."""
    body = json.loads(line)
    if not isinstance(body, dict):
        raise ValueError("not a JSON object")
    return Message(line.strip(), body)


def header_value(text: str) -> str:
    """A value as a header may carry it: as it is, or wrapped in base64."""
    if PLAIN.fullmatch(text) and not WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def routing(message: Message) -> dict[str, str]:
    """The headers in which a modern request repeats its body."""
    headers = {"MCP-Protocol-Version": message.revision or "", "Mcp-Method": header_value(message.method)}
    name = message.params.get(NAMED_BY.get(message.method, ""))
    if isinstance(name, str):
        headers["Mcp-Name"] = header_value(name)
    return headers


Mirrors = dict[str, list[tuple[tuple[str, ...], str]]]
"""For each tool: where the arguments stand that a header repeats, and the header's name."""


def mirrors(tools: Any) -> Mirrors:
    """The arguments that tools, as listed, want to see repeated in headers."""
    found: Mirrors = {}
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            found[tool["name"]] = list(annotated(tool.get("inputSchema")))
    return found


def annotated(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, sub in properties.items() if isinstance(properties, dict) and len(path) < 16 else ():
        header = sub.get("x-mcp-header") if isinstance(sub, dict) else None
        if isinstance(header, str) and re.fullmatch(r"[A-Za-z0-9-]+", header):
            yield (*path, name), f"Mcp-Param-{header}"
        yield from annotated(sub, (*path, name))


def mirrored(message: Message, known: Mirrors) -> dict[str, str]:
    """The further headers that a call of a tool needs."""
    headers = {}
    for path, header in known.get(str(message.params.get("name")), ()):
        value: Any = message.params.get("arguments")
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str | int | float):
            text = value if isinstance(value, str) else json.dumps(value)
            headers[header] = header_value(text)
    return headers


def skip_value(raw: bytes, at: int) -> int:
    """Where the value that begins at `at` ends."""
    depth = 0
    while True:
        opening = raw[at : at + 1]
        if opening == b'"':
            found = STRING.match(raw, at)
        elif opening in (b"{", b"["):
            depth, found = depth + 1, BRACKET.match(raw, at)
        elif opening in (b"}", b"]"):
            depth, found = depth - 1, BRACKET.match(raw, at)
        else:
            found = (SKIPPED if depth else SCALAR).match(raw, at)
        if found is None:
            raise ValueError("not JSON")
        at = found.end()
        if depth == 0:
            return at


def member(raw: bytes, at: int, key: str) -> int | None:
    """Where the value of `key` begins in the object that begins at `at`."""
    here = skip_space(raw, at + 1)
    found = None
    while raw[here : here + 1] == b'"':
        quoted = STRING.match(raw, here)
        if quoted is None:
            return None
        value = skip_space(raw, skip_space(raw, quoted.end()) + 1)
        if json.loads(quoted[0]) == key:
            found = value
        here = skip_space(raw, skip_value(raw, value))
        here = skip_space(raw, here + 1) if raw[here : here + 1] == b"," else here
    return found


def outline(raw: bytes) -> Mapping[str, Any]:
    """The members of a message; of one that is nested too deep to be read, those that say what it is."""
    with suppress(ValueError):
        try:
            body = json.loads(raw)
        except RecursionError:
            body = named(raw, "id", "method")
        if isinstance(body, dict):
            return body
    return {}


def named(raw: bytes, *keys: str) -> dict[str, Any]:
    """Some members of an object, whatever the others are."""
    start = skip_space(raw, 0)
    places = {key: member(raw, start, key) for key in keys}
    return {key: json.loads(raw[at : skip_value(raw, at)]) for key, at in places.items() if at is not None}


def skip_space(raw: bytes, at: int) -> int:
    found = SPACE.match(raw, at)
    return found.end() if found else at


def prepend(raw: bytes, at: int, text: bytes) -> bytes:
    """The object at `at` with `text` as its first member."""
    empty = raw[skip_space(raw, at + 1) : skip_space(raw, at + 1) + 1] == b"}"
    return raw[: at + 1] + text + (b"" if empty else b",") + raw[at + 1 :]


def with_key(message: Message, key: str) -> bytes:
    """The message's bytes with an idempotency key in its `_meta`; nothing else is touched."""
    raw = message.raw
    if KEY in message.meta or not isinstance(message.body.get("params"), dict):
        return raw
    params = member(raw, 0, "params")
    if params is None:
        return raw
    entry = json.dumps(KEY).encode() + b":" + json.dumps(key).encode()
    meta = member(raw, params, "_meta") if isinstance(message.params.get("_meta"), dict) else None
    if meta is not None:
        return prepend(raw, meta, entry)
    if "_meta" in message.params:
        return raw
    return prepend(raw, params, b'"_meta":{' + entry + b"}")


def error(ident: Any, code: int, text: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": text}}).encode()

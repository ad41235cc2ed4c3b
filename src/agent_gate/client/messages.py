"""The host's messages as the bridge forwards them: what they are, what their headers must repeat, and a key put into one unseen."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from agent_gate.mcp.headers import METHOD, NAME, VERSION, Mirror, mirrors, plain_text, value_at, wrap
from agent_gate.mcp.names import META_KEY, META_VERSION, NAMED_BY

SPACE = re.compile(rb"[ \t\r\n]*")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
SKIPPED = re.compile(rb'[^"{}\[\]]+')
BRACKET = re.compile(rb"[{}\[\]]")
SCALAR = re.compile(rb"[^,}\]\s]+")


class HostMessage(NamedTuple):
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
        """The name of the revision, where the request says everything for itself; it may be newer than this program."""
        found = self.meta.get(META_VERSION)
        return found if isinstance(found, str) else None


def read(line: bytes) -> HostMessage:
    """A line from the host; `ValueError` where it is no JSON object."""
    body = json.loads(line)
    if not isinstance(body, dict):
        raise ValueError("not a JSON object")
    return HostMessage(line.strip(), body)


def routing(message: HostMessage) -> dict[str, str]:
    """The headers in which a request that says everything for itself repeats its body."""
    headers = {VERSION: message.revision or "", METHOD: wrap(message.method)}
    name = message.params.get(NAMED_BY.get(message.method, ""))
    if isinstance(name, str):
        headers[NAME] = wrap(name)
    return headers


ToolMirrors = dict[str, list[Mirror]]


def mirrors_of(tools: Any) -> ToolMirrors:
    """For each tool as listed: the arguments that it wants to see repeated in headers."""
    found: ToolMirrors = {}
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            found[tool["name"]] = list(mirrors(tool.get("inputSchema")))
    return found


def repeated(message: HostMessage, known: ToolMirrors) -> dict[str, str]:
    """The further headers that a call of a tool needs."""
    headers = {}
    for mirror in known.get(str(message.params.get("name")), ()):
        text = plain_text(value_at(message.params.get("arguments"), mirror.path))
        if text is not None:
            headers[mirror.header] = wrap(text)
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


def with_key(message: HostMessage, key: str) -> bytes:
    """The message's bytes with an idempotency key in its `_meta`; nothing else is touched."""
    raw = message.raw
    if META_KEY in message.meta or not isinstance(message.body.get("params"), dict):
        return raw
    params = member(raw, 0, "params")
    if params is None:
        return raw
    entry = json.dumps(META_KEY).encode() + b":" + json.dumps(key).encode()
    meta = member(raw, params, "_meta") if isinstance(message.params.get("_meta"), dict) else None
    if meta is not None:
        return prepend(raw, meta, entry)
    if "_meta" in message.params:
        return raw
    return prepend(raw, params, b'"_meta":{' + entry + b"}")


def error(ident: Any, code: int, text: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": text}}).encode()

"""One text frame into a `Message`, or into the error that answers it; results and errors back into text."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from agent_gate.core.strict import MalformedJson, strict_json
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError, InvalidArgs

PARSE_ERROR = -32700
UNKNOWN_METHOD = -32601
LONGEST_ID = 1024
VERSION = "2.0"

encode = msgspec.json.encode


class SocketMessage(NamedTuple):
    """A request, or a notification where `id` is None."""

    id: Json
    method: str
    params: Mapping[str, Json]


class SocketRefused(Exception):
    """A message that is not a request; `code` overrides the error's own JSON-RPC code."""

    def __init__(self, error: GatewayError, *, ident: Json = None, code: int | None = None) -> None:
        super().__init__(error.message)
        self.error, self.ident, self.code = error, ident, code


def parse(data: str | bytes) -> SocketMessage:
    """A message as far as it can be one; `Refused` carries its id wherever it has a usable one."""
    if isinstance(data, bytes):
        raise SocketRefused(InvalidArgs("Invalid request: send text frames, not binary ones"))
    try:
        value = strict_json(data)
    except MalformedJson as error:
        raise SocketRefused(InvalidArgs(f"Parse error: {error}"), code=PARSE_ERROR) from None
    if not isinstance(value, dict):
        raise SocketRefused(InvalidArgs("Invalid request: send one JSON object per message"))
    ident = checked_id(value.get("id"))
    if value.get("jsonrpc", VERSION) != VERSION:
        raise SocketRefused(InvalidArgs('Invalid request: jsonrpc must be "2.0"'), ident=ident)
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str):
        raise SocketRefused(InvalidArgs("Invalid request: method must be a string"), ident=ident)
    if params is None:
        params = {}
    if not isinstance(params, dict):
        raise SocketRefused(InvalidArgs("Invalid request: params must be an object"), ident=ident)
    return SocketMessage(ident, method, params)


def checked_id(ident: Json) -> Json:
    """JSON-RPC ids are strings and numbers; anything else cannot be answered under its own id."""
    plain = ident is None or (isinstance(ident, str | int | float) and not isinstance(ident, bool))
    if not plain or len(str(ident)) > LONGEST_ID:
        raise SocketRefused(InvalidArgs("Invalid request: id must be a short string or a number"))
    return ident


def result_text(ident: Json, result: bytes) -> str:
    return (b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(ident), result)).decode()


def error_text(ident: Json, error: GatewayError, code: int | None = None, **extra: Any) -> str:
    """An error reply. `data` is the error in its one outward form, with what the client may act on."""
    data = error.as_dict() | extra
    if error.retry_after is not None:
        data["retry_after"] = round(error.retry_after, 1)
    body = {"code": error.rpc if code is None else code, "message": error.message, "data": data}
    return (b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(ident), encode(body))).decode()


def notification_text(method: str, params: Mapping[str, Json]) -> str:
    return encode({"jsonrpc": "2.0", "method": method, "params": params}).decode()

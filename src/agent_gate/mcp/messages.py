"""JSON-RPC messages as MCP writes them: decoded one level deep, and spliced around what is JSON already.

Ids, parameters, results and errors stay the bytes they came as, so that a result travels through unparsed.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from agent_gate.core.tool import Json
from agent_gate.mcp.errors import RpcError

NOTHING = Raw(b"")
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a stranger's bytes may raise."""

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


class Message(msgspec.Struct, gc=False):
    """One message. A request has `method` and `id`, a notification only `method`, a response the rest."""

    id: Raw = NOTHING
    method: str = ""
    params: Raw = NOTHING
    result: Raw = NOTHING
    error: Raw = NOTHING
    jsonrpc: Any = None


decode_message = msgspec.json.Decoder(Message).decode
decode_object = msgspec.json.Decoder(dict[str, Any]).decode
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


def response(number: bytes, result: bytes) -> bytes:
    """A response around a result that is JSON already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (number, result)


def error_response(number: bytes, error: RpcError) -> bytes:
    body: dict[str, Json] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (number or b"null", encode(body))


def notification(method: str, params: Mapping[str, Json] | None = None) -> bytes:
    message: dict[str, Json] = {"jsonrpc": "2.0", "method": method}
    if params:
        message["params"] = params
    return encode(message)


def request(number: int | str, method: str, params: Mapping[str, Json] | None) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})


def one_line(message: bytes) -> bytes:
    """JSON without line breaks, which can only stand between its tokens."""
    if b"\n" in message or b"\r" in message:
        return message.replace(b"\r", b" ").replace(b"\n", b" ")
    return message

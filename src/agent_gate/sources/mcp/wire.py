"""JSON-RPC as MCP writes it: shallow decoding, encoding, and the protocol's eras.

A message is decoded one level deep; `params`, `result` and `error` stay the bytes that came, so that a
result travels to the caller unparsed.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from agent_gate.core.tool import Json
from agent_gate.mcp.messages import UNREADABLE as UNREADABLE

MODERN = "2026-07-28"
NEWEST_HANDSHAKE = "2025-11-25"
HANDSHAKE_ERAS = ("2024-11-05", "2025-03-26", "2025-06-18", NEWEST_HANDSHAKE)

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022

META = "io.modelcontextprotocol/"
META_VERSION = META + "protocolVersion"
META_CAPABILITIES = META + "clientCapabilities"
META_CLIENT = META + "clientInfo"
META_SERVER = META + "serverInfo"
META_LOG_LEVEL = META + "logLevel"
META_SUBSCRIPTION = META + "subscriptionId"

MAX_MESSAGE = 16 * 1024 * 1024
LONGEST_ERROR = 2_000
NULL = b"null"

Id = int | str
encode = msgspec.json.encode
decode_json = msgspec.json.decode


class Message(msgspec.Struct, gc=False):
    """One message, one level deep. A request has `method` and `id`, a notification only `method`."""

    id: Id | None = None
    method: str = ""
    params: Raw = Raw(b"")
    result: Raw = Raw(b"")
    error: Raw = Raw(b"")


class ErrorBody(msgspec.Struct):
    code: int = INTERNAL_ERROR
    message: str = ""
    data: Any = None


class RpcError(Exception):
    """The peer answered with a JSON-RPC error, or is to be answered with one."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Broken(Exception):
    """The connection failed. `sent` says whether the request may have reached the server."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent

    @property
    def brief(self) -> str:
        """The reason without what the server printed."""
        return self.reason.partition("\n")[0]


class Unanswered(RpcError):
    """A reply came that is none to the request, which may have run; `came` is what was sent."""

    def __init__(self, message: str, came: bytes = b"") -> None:
        super().__init__(INTERNAL_ERROR, message)
        self.came = came


class Refused(RpcError):
    """The server turned the request away with an HTTP status, before looking at it."""

    def __init__(self, status: int) -> None:
        super().__init__(INVALID_REQUEST, f"it answered with HTTP status {status}")
        self.status = status


class Moved(Refused):
    """The server sends the request elsewhere, where it is not sent: a credential goes to the address of the entry."""

    def __init__(self, status: int, where: str) -> None:
        super().__init__(status)
        self.message = f"it redirects to {where or 'no address'}, which is not followed: write its own address as its url"


class StaleSession(Exception):
    """The server no longer knows the session; it did not look at the request.

    `current` tells whether the forgotten session is still the one in use, or another request renewed it.
    """

    def __init__(self, current: Callable[[], bool]) -> None:
        super().__init__("the server forgot the session")
        self.current = current


class Throttled(Exception):
    """The server refused to take the request now; `after` is the number of seconds it asks to wait."""

    def __init__(self, after: float) -> None:
        super().__init__("the server limits how often it is called")
        self.after = after


decode_message = msgspec.json.Decoder(Message).decode
decode_batch = msgspec.json.Decoder(list[Message]).decode
decode_error = msgspec.json.Decoder(ErrorBody).decode


def is_modern(era: str) -> bool:
    return era == MODERN


def decode(data: bytes) -> list[Message]:
    """The messages in one frame; the 2025-03-26 revision may batch them. `msgspec.DecodeError` if it is none."""
    if data[:1] == b"{":
        return [decode_message(data)]
    return decode_batch(data) if data.lstrip()[:1] == b"[" else [decode_message(data)]


def encode_request(number: Id, method: str, params: Mapping[str, Json] | None) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})


def encode_notification(method: str, params: Mapping[str, Json] | None = None) -> bytes:
    message: dict[str, Json] = {"jsonrpc": "2.0", "method": method}
    if params:
        message["params"] = params
    return encode(message)


def encode_result(number: Id | None, result: Json) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "result": result})


def encode_error(number: Id | None, error: RpcError) -> bytes:
    body: dict[str, Json] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return encode({"jsonrpc": "2.0", "id": number, "error": body})


def rpc_error(raw: Raw) -> RpcError:
    """The error in a response; one that is itself malformed still becomes an error."""
    try:
        body = decode_error(raw)
    except UNREADABLE:
        return RpcError(INTERNAL_ERROR, "the server sent a malformed error")
    return RpcError(body.code, body.message[:LONGEST_ERROR], body.data)


def result_of(message: Message) -> bytes:
    """The raw result object of a response, or its error raised. What has both, or neither, is no answer."""
    if message.error and bytes(message.error) != NULL:
        result = bytes(message.result)
        if result and result != NULL:
            raise Unanswered("it sent a response with both a result and an error", result)
        raise rpc_error(message.error)
    if message.result:
        return bytes(message.result)
    raise Unanswered("it sent a response with neither result nor error")


def params_of(message: Message) -> dict[str, Json]:
    """The decoded parameters; anything but an object counts as none."""
    return object_in(message.params) or {} if message.params else {}


def object_in(data: bytes | Raw) -> dict[str, Json] | None:
    """The JSON object in `data`, or None where it holds anything else."""
    try:
        found = decode_json(data)
    except UNREADABLE:
        return None
    return found if isinstance(found, dict) else None

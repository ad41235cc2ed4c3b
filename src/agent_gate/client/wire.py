"""The messages of the WebSocket surface as the client reads and writes them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_gate.errors import (
    ApprovalDenied,
    ApprovalTimeout,
    Forbidden,
    GatewayError,
    Internal,
    InvalidArgs,
    RateLimited,
    Unauthorized,
    UpstreamError,
    by_code,
)

LONGEST_WAIT = 24 * 3600.0
SESSION_OVER = "session over"
"""The reason by which a client says with its goodbye that nobody goes on with its session."""
CLASSES = by_code()
BY_RPC: Mapping[int, type[GatewayError]] = {
    -32001: ApprovalDenied,
    -32002: ApprovalTimeout,
    -32003: Forbidden,
    -32004: UpstreamError,
    -32005: Unauthorized,
    -32006: RateLimited,
    -32600: InvalidArgs,
    -32601: InvalidArgs,
    -32700: InvalidArgs,
}


class WireError(msgspec.Struct):
    """An error reply; `data` is the gateway's own error object where it sent one."""

    code: int = -32603
    message: str = ""
    data: dict[str, Any] | None = None

    def error(self) -> GatewayError:
        """The error of the tree that the gateway meant."""
        data = self.data or {}
        cls = CLASSES.get(str(data.get("code"))) or BY_RPC.get(self.code, Internal)
        message = self.message or str(data.get("message", "The gateway answered with an error"))
        details, wait = data.get("details"), data.get("retry_after")
        error = cls(message)
        error.details = details if isinstance(details, dict) else None
        error.retry_after = wait if isinstance(wait, int | float) and 0 <= wait < LONGEST_WAIT else None
        return error


class Incoming(msgspec.Struct):
    """Anything the gateway sends: a reply, or a notification with `method`."""

    id: int | str | float | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: WireError | None = None
    method: str = ""
    params: dict[str, Any] = {}


class Executed(msgspec.Struct):
    """The result of a `tool_request`."""

    data: msgspec.Raw = msgspec.Raw(b"null")
    request_id: str = ""


class KeptResult(msgspec.Struct):
    """The `result` column of a pending row."""

    status: str = ""
    data: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] | None = None


class Reply:
    """What a tool answered: `raw` is the JSON as it came, `data` the value, `call_id` the gateway's name for the call."""

    __slots__ = ("call_id", "raw")

    def __init__(self, raw: bytes, call_id: str) -> None:
        self.raw, self.call_id = raw, call_id

    @property
    def data(self) -> Any:
        return msgspec.json.decode(self.raw)


decode_incoming = msgspec.json.Decoder(Incoming).decode
decode_executed = msgspec.json.Decoder(Executed).decode
decode_kept = msgspec.json.Decoder(KeptResult).decode


def reply_of(result: bytes) -> Reply:
    executed = decode_executed(result)
    return Reply(bytes(executed.data), executed.request_id)


def kept_reply(row: Mapping[str, Any]) -> Reply | GatewayError | None:
    """What a pending row says: the reply, or the error that the call ended in; None where it cannot be read."""
    try:
        kept = decode_kept(row["result"])
    except (msgspec.DecodeError, TypeError, RecursionError):
        return None
    if kept.status == "executed":
        return Reply(bytes(kept.data), str(row["request_id"]))
    error = kept.error or {"message": str(msgspec.json.decode(kept.data))}
    return WireError(message=str(error.get("message", "")), data=error).error()


def unreadable(what: str) -> Internal:
    return Internal(f"The gateway's list of {what} cannot be read", details={"local": True})


def readable_tools(found: list[Any]) -> list[dict[str, Any]]:
    """Tools as a gateway describes them, or an error: others rely on these members."""
    wanted = {"name": str, "description": str, "input_schema": dict, "args": dict}
    for tool in found:
        if not isinstance(tool, dict) or not all(isinstance(tool.get(k), t) for k, t in wanted.items()):
            raise unreadable("tools")
    return found


def readable_rows(found: list[Any]) -> list[dict[str, Any]]:
    """Rows of kept results, which others acknowledge by their ids."""
    if not all(isinstance(row, dict) and isinstance(row.get("request_id"), str) for row in found):
        raise unreadable("results")
    return found


def request_text(ident: int | None, method: str, params: Mapping[str, Any]) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if ident is not None:
        message["id"] = ident
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        raise InvalidArgs("The request has text that is not Unicode: a lone surrogate") from None

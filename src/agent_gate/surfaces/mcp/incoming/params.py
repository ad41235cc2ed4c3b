"""What clients send: messages and parameters, read strictly and bounded in depth, with an error that says what is wrong."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from agent_gate.core.tool import Json
from agent_gate.mcp.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError
from agent_gate.mcp.messages import UNREADABLE, Message, decode, decode_message, decode_object
from agent_gate.mcp.names import CALL_TOOL

MAX_DEPTH = 64
LONGEST_ID = 256
STARTS_ID = b'"-0123456789'
NOT_JSON = "Parse error: the body is not one JSON value in UTF-8"
MIXED = "Invalid request: it has neither a method nor, with an id, either a result or an error"
NO_OBJECT = "Invalid params: they must be an object"


class CallParams(msgspec.Struct, gc=False):
    """The parameters of `tools/call`; arguments are decoded because policy reads them."""

    name: str
    given: dict[str, Any] | None = msgspec.field(default=None, name="arguments")
    meta: dict[str, Any] = msgspec.field(default_factory=dict, name="_meta")
    input_responses: Any = msgspec.field(default=msgspec.UNSET, name="inputResponses")
    request_state: Any = msgspec.field(default=msgspec.UNSET, name="requestState")

    @property
    def arguments(self) -> dict[str, Any]:
        """Some clients say null where they mean none."""
        return self.given if self.given is not None else {}


Params = CallParams | dict[str, Any]
decode_call = msgspec.json.Decoder(CallParams).decode


def read_message(body: bytes) -> Message:
    """The message in `body`; `RpcError` says what is wrong with it."""
    try:
        if not body.isascii():
            body.decode()
        message = decode_message(body)
    except msgspec.ValidationError:
        raise no_message(body) from None
    except UNREADABLE:
        raise RpcError(PARSE_ERROR, NOT_JSON) from None
    raw = bytes(message.id)
    if raw and (len(raw) > LONGEST_ID or raw[0] not in STARTS_ID):
        raise RpcError(INVALID_REQUEST, "Invalid request: the id must be a short string or a number")
    if message.jsonrpc != "2.0":
        raise RpcError(INVALID_REQUEST, 'Invalid request: jsonrpc must be "2.0"')
    if not message.method or message.result or message.error:
        check_response(message)
    return message


def check_response(message: Message) -> None:
    """What is no plain request or notification must be the response to one: an id, and a result or an error."""
    if message.method or not message.id or bool(message.result) == bool(message.error):
        raise RpcError(INVALID_REQUEST, MIXED)


def no_message(body: bytes) -> RpcError:
    """What to say to JSON that is not a message, and to what only began like JSON."""
    try:
        decode(body)
    except UNREADABLE:
        return RpcError(PARSE_ERROR, NOT_JSON)
    if body.lstrip()[:1] == b"[":
        return RpcError(INVALID_REQUEST, "Batches are not accepted; send each message by itself")
    return RpcError(INVALID_REQUEST, "Invalid request: the body is not a JSON-RPC message")


def read_params(method: str, raw: Raw) -> tuple[Params, Mapping[str, Json]]:
    """A request's parameters, and their `_meta`."""
    if method == CALL_TOOL:
        wanted = read_call(raw)
        return wanted, wanted.meta
    params = read_object(raw)
    meta = params.get("_meta")
    return params, meta if isinstance(meta, dict) else {}


def read_object(raw: Raw) -> dict[str, Any]:
    """Parameters as a dict; absent ones are an empty one."""
    if not raw:
        return {}
    try:
        params = decode_object(raw)
    except UNREADABLE:
        raise RpcError(INVALID_PARAMS, NO_OBJECT) from None
    check_depth(raw, params)
    return params


def read_answer(raw: Raw) -> Json:
    """What a client answered to a question of ours."""
    try:
        value = decode(raw)
    except UNREADABLE:
        raise RpcError(INVALID_PARAMS, "it is not JSON") from None
    check_depth(raw, value)
    return value


def read_call(raw: Raw) -> CallParams:
    try:
        wanted = decode_call(raw)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from None
    except UNREADABLE:
        raise RpcError(INVALID_PARAMS, NO_OBJECT) from None
    check_depth(raw, [wanted.given, wanted.meta, wanted.input_responses])
    return wanted


def check_depth(raw: Raw, value: Json) -> None:
    """Refuse what is nested too deep; values with few brackets cannot be, and are not looked at."""
    body = bytes(raw)
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH + 2):
        level = [child for node in level for child in children(node)]
        if not level:
            return
    raise RpcError(INVALID_PARAMS, f"Invalid params: they are nested deeper than {MAX_DEPTH} levels")


def children(node: Json) -> Any:
    if type(node) is dict:
        return node.values()
    return node if type(node) is list else ()

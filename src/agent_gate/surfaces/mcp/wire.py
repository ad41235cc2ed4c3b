"""JSON-RPC as MCP writes it: the revisions, the error codes, shallow decoding, and splicing of answers.

A message is decoded one level deep; ids and results stay the bytes they came as.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from agent_gate import __version__
from agent_gate.core.tool import Json

MODERN = "2026-07-28"
NEWEST_HANDSHAKE = "2025-11-25"
HANDSHAKE_ERAS = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", NEWEST_HANDSHAKE})
UNSAID_ERA = "2025-03-26"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}

RESERVED = "io.modelcontextprotocol/"
META_VERSION = RESERVED + "protocolVersion"
META_CAPABILITIES = RESERVED + "clientCapabilities"
META_LOG_LEVEL = RESERVED + "logLevel"
META_SERVER = RESERVED + "serverInfo"
META_SUBSCRIPTION = RESERVED + "subscriptionId"
OURS = "agent-gate/"
META_TOOL = OURS + "tool-id"
META_ERROR = OURS + "error"
META_SOURCE = OURS + "source"
META_PENDING = OURS + "pending"
META_KEY = OURS + "idempotency-key"

PROGRESS = "notifications/progress"
LOG = "notifications/message"
ELICITED = "notifications/elicitation/complete"
TOOLS_CHANGED = "notifications/tools/list_changed"
PROMPTS_CHANGED = "notifications/prompts/list_changed"
RESOURCES_CHANGED = "notifications/resources/list_changed"
RESOURCE_UPDATED = "notifications/resources/updated"

SERVER = {"name": "agent-gate", "title": "agent-gate", "version": __version__}
MAX_DEPTH = 64
LONGEST_ID = 256
STARTS_ID = b'"-0123456789'
NOTHING = Raw(b"")
NOT_JSON = "Parse error: the body is not one JSON value in UTF-8"

encode = msgspec.json.encode
decode = msgspec.json.decode


class Message(msgspec.Struct, gc=False):
    """One message. A request has `method` and `id`, a notification only `method`, an answer the rest."""

    id: Raw = NOTHING
    method: str = ""
    params: Raw = NOTHING
    result: Raw = NOTHING
    error: Raw = NOTHING
    jsonrpc: Any = None


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

decode_message = msgspec.json.Decoder(Message).decode
decode_call = msgspec.json.Decoder(CallParams).decode
decode_object = msgspec.json.Decoder(dict[str, Any]).decode
decode_members = msgspec.json.Decoder(dict[str, Raw]).decode


class RpcError(Exception):
    """A request is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def read_message(body: bytes) -> Message:
    """The message in `body`; `RpcError` says what is wrong with it."""
    try:
        if not body.isascii():
            body.decode()
        message = decode_message(body)
    except msgspec.ValidationError:
        raise no_message(body) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RpcError(PARSE_ERROR, NOT_JSON) from None
    raw = bytes(message.id)
    if raw and (len(raw) > LONGEST_ID or raw[0] not in STARTS_ID):
        raise RpcError(INVALID_REQUEST, "Invalid request: the id must be a short string or a number")
    return message


def no_message(body: bytes) -> RpcError:
    """What to say to JSON that is not a message, and to what only began like JSON."""
    try:
        decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return RpcError(PARSE_ERROR, NOT_JSON)
    if body.lstrip()[:1] == b"[":
        return RpcError(INVALID_REQUEST, "Batches are not accepted; send each message by itself")
    return RpcError(INVALID_REQUEST, "Invalid request: the body is not a JSON-RPC message")


def read_params(method: str, raw: Raw) -> tuple[Params, Mapping[str, Json]]:
    """A request's parameters, and their `_meta`."""
    if method == "tools/call":
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RpcError(INVALID_PARAMS, "Invalid params: they must be an object") from None
    check_depth(raw, params)
    return params


def read_answer(raw: Raw) -> Json:
    """What a client answered to a question of ours."""
    try:
        value = decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise RpcError(INVALID_PARAMS, "it is not JSON") from None
    check_depth(raw, value)
    return value


def read_call(raw: Raw) -> CallParams:
    try:
        wanted = decode_call(raw)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RpcError(INVALID_PARAMS, "Invalid params: they must be an object") from None
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


def response(number: bytes, result: bytes) -> bytes:
    """An answer around a result that is JSON already."""
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


def request(number: int, method: str, params: Mapping[str, Json]) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def without_reserved(meta: Mapping[str, Json]) -> dict[str, Json]:
    """`_meta` without what speaks for one connection only."""
    return {name: value for name, value in meta.items() if not name.startswith(RESERVED)}

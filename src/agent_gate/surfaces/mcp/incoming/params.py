"""What clients send: messages and parameters, read strictly and bounded in depth, with an error that says what is wrong.

A message that gives a key twice in one object is refused: two programs could read it differently. Every key is followed
by a colon, so a text has more of them than what was parsed has keys where one was repeated. Counting is all that most
messages cost; only what colons inside strings make doubtful is taken apart.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from agent_gate.core.strict import STRING
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
CONTAINERS = frozenset({dict, list})
BLANK = bytes.maketrans(b"\t\n\r", b"   ")


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


def read_params(body: bytes, message: Message) -> tuple[Params, Mapping[str, Json]]:
    """The parameters of the request in `body`, and their `_meta`."""
    if message.method == CALL_TOOL:
        wanted = read_call(body, message.params)
        given, keys = wanted.given or {}, 5 + (wanted.given is not None) + bool(wanted.meta)
        # Most objects have no others inside them, and then no colon is left to account for.
        if body.count(b":") != keys + len(given) + len(wanted.meta):
            refuse_repeats(body, keys, (given, wanted.meta))
        return wanted, wanted.meta
    params = read_object(message.params)
    refuse_repeats(body, 3 + bool(message.params), (params,))
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


def read_call(body: bytes, raw: Raw) -> CallParams:
    try:
        wanted = decode_call(raw)
    except msgspec.ValidationError as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from None
    except UNREADABLE:
        raise RpcError(INVALID_PARAMS, NO_OBJECT) from None
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
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


def refuse_repeats(body: bytes, keys: int, objects: tuple[dict[str, Json], ...]) -> None:
    """Raise where an object of the request in `body` gives a key twice; it has `keys` beside those of `objects`."""
    keys += sum(map(keys_in, objects))
    if body.count(b":") != keys:
        look_closer(body, keys)


def keys_in(value: dict[str, Json]) -> int:
    """The keys of this object and of all inside it; never deeper than what was let in."""
    count = len(value)
    for item in value.values():
        kind = type(item)
        if kind in CONTAINERS and item:
            count += keys_in(item) if kind is dict else keys_in_items(item)
    return count


def keys_in_items(items: list[Json]) -> int:
    return sum(
        keys_in(item) if type(item) is dict else keys_in_items(item)
        for item in items
        if type(item) in CONTAINERS
    )


def look_closer(body: bytes, keys: int) -> None:
    """Leave out colons that are text, as far as counting can tell; what is unclear then is read as a whole."""
    after_quotes = body.count(b'":')
    if after_quotes != keys:
        # An escaped quote ends no key, unless it is the backslash before it that is escaped.
        after_quotes -= body.count(b'\\":') if b'\\\\"' not in body else 0
    apart = body.translate(BLANK).find(b" :") >= 0
    if after_quotes == keys and not apart:
        return
    try:
        repeated = STRING.sub("", body.decode()).count(":") != keys_in(decode(body))
    except (msgspec.DecodeError, RecursionError):  # in a member that nobody else reads
        raise RpcError(PARSE_ERROR, NOT_JSON) from None
    if repeated:
        raise RpcError(PARSE_ERROR, "Parse error: a key is given twice in one object")

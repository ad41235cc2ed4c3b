"""What servers send, read forgivingly: a frame into messages, and a response into its raw result or its error."""

import re
from typing import Any

import msgspec
from msgspec import Raw

from agent_gate.core.tool import Json
from agent_gate.mcp.errors import INTERNAL_ERROR, RpcError, Unanswered
from agent_gate.mcp.messages import UNREADABLE, Message, decode, decode_message

MAX_MESSAGE = 16 * 1024 * 1024
LONGEST_ERROR = 2_000
NULL = b"null"
ENDS = 256
VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
BEGINS = re.compile(
    rb'\s*\{\s*(?:%b\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*(?:%b\s*,\s*)?"(?:result|error)"'
    % (VERSION, VERSION)
)
RESULT_FIRST = re.compile(rb'\s*\{\s*(?:%b\s*,\s*)?"(?:result|error)"' % VERSION)
ENDS_WITH = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*%b\s*)?\}\s*$' % VERSION)


class ErrorBody(msgspec.Struct):
    code: int = INTERNAL_ERROR
    message: str = ""
    data: Any = None


decode_batch = msgspec.json.Decoder(list[Message]).decode
decode_error = msgspec.json.Decoder(ErrorBody).decode


def read_frame(data: bytes) -> list[Message]:
    """The messages in one frame; one of the revisions may batch them. Raises one of `UNREADABLE` if it is none."""
    if data[:1] == b"{":
        return [decode_message(data)]
    return decode_batch(data) if data.lstrip()[:1] == b"[" else [decode_message(data)]


def messages_in(data: bytes) -> list[Message]:
    try:
        return read_frame(data) if data else []
    except UNREADABLE:
        return []


def answer_in(body: bytes, number: int, status: int = 200) -> Message:
    """The response with our number in a JSON body; most spell the number as we did."""
    try:
        message = decode_message(body)
        if bytes(message.id) == b"%d" % number and not message.method:
            return message
    except UNREADABLE:
        pass
    for message in messages_in(body):
        if not message.method and number_of(message) == number:
            return message
    raise Unanswered(
        "it answered with something that is not the response to the request: "
        f"HTTP status {status} and {len(body)} bytes",
        body,
    )


def number_of(message: Message) -> int | None:
    """The number of the request that a response answers; all of ours have one."""
    try:
        return int(message.id)
    except ValueError:
        return None


def answered_by(data: bytes) -> int | None:
    """The number of the request that an unreadable response answers, such as one nested too deep, by its two ends."""
    found = BEGINS.match(data[:ENDS])
    if found is None and RESULT_FIRST.match(data[:ENDS]):
        found = ENDS_WITH.search(data[-ENDS:])
    return int(found[1]) if found is not None else None


def wants_reply(message: Message) -> bool:
    """Whether it is a request of the server, and no notification. An id that is no text could not be repeated."""
    number = bytes(message.id)
    if not message.method or not number or number == NULL:
        return False
    try:
        return bool(number.decode())
    except UnicodeDecodeError:
        return False


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
        found = decode(data)
    except UNREADABLE:
        return None
    return found if isinstance(found, dict) else None

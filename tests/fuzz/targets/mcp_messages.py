"""Bytes from a client to an MCP message: refused as the protocol says, or read as any other reader would read them."""

import json
from typing import Any

from tests.fuzz.fuzzing import Target

from agent_gate.mcp.errors import STATUSES, RpcError
from agent_gate.mcp.messages import Message, error_response, response
from agent_gate.surfaces.mcp.incoming.params import CallParams, Params, read_message, read_params

LONGEST_ERROR = 1_000


def run(data: bytes) -> None:
    try:
        message = read_message(data)
        params, _ = read_params(data, message)
    except RpcError as error:
        refused(error)
        return
    whole = json.loads(data, object_pairs_hook=once if message.method and message.id else dict)
    assert whole["jsonrpc"] == "2.0"
    assert str(whole.get("method", "")) == message.method
    agrees(whole, message, params)


def refused(error: RpcError) -> None:
    assert error.code in STATUSES
    assert len(json.loads(error_response(b"", error))["error"]["message"]) < LONGEST_ERROR


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), "a key that is given twice was let in"
    return found


def agrees(whole: dict[str, Any], message: Message, params: Params) -> None:
    """The parts that are taken from a message are those that another reader finds."""
    if message.id:
        assert json.loads(response(bytes(message.id), b"{}"))["id"] == whole["id"]
    if isinstance(params, CallParams):
        assert params.name == whole["params"]["name"]
        assert params.arguments == (whole["params"].get("arguments") or {})
    elif message.params:
        assert params == whole["params"]


TARGET = Target(
    "mcp_messages",
    run,
    words=(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}', b'"jsonrpc":"2.0"', b'"id":',
        b'"method":"ping"', b'"params":{', b'"_meta":{', b'"arguments":', b'"name":"x"', b'"result":{}', b'"error":{}', b"null", b"[", b"]",
        b"{", b"}", b",", b":", b'"', b"\\", b"\\u0000", b"\xff", b"1e999", b"-0", b" ", b"\n",
    ),
)  # fmt: skip

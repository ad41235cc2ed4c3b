"""The shallow parser of MCP messages against a slow one that decodes everything with the standard library."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agent_gate.mcp.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError
from agent_gate.surfaces.mcp.incoming.params import MAX_DEPTH, CallParams, read_message, read_params

Verdict = tuple[str, Any]


def refuse_constant(name: str) -> Any:
    raise ValueError(name)


def plain(body: bytes) -> Any:
    """JSON as the standard says: UTF-8, no NaN, one value."""
    return json.loads(body.decode("utf-8"), parse_constant=refuse_constant)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def oracle(body: bytes) -> Verdict:
    """What a message is, found out the slow way: an error's code, or method, id and parameters."""
    try:
        message = plain(body)
    except (ValueError, RecursionError):
        return "error", PARSE_ERROR
    if not isinstance(message, dict) or not isinstance(message.get("method", ""), str):
        return "error", INVALID_REQUEST
    number = message.get("id")
    if "id" in message and (isinstance(number, bool) or not isinstance(number, str | int | float)):
        return "error", INVALID_REQUEST
    if message.get("jsonrpc") != "2.0" or not (is_asked(message) or is_response(message)):
        return "error", INVALID_REQUEST
    if "id" not in message or not message.get("method"):
        return "silent", None
    return parameters(message)


def is_asked(message: dict[str, Any]) -> bool:
    return bool(message.get("method")) and "result" not in message and "error" not in message


def is_response(message: dict[str, Any]) -> bool:
    answers = ("result" in message) != ("error" in message)
    return answers and "id" in message and not message.get("method")


def parameters(message: dict[str, Any]) -> Verdict:
    params = message.get("params", {})
    called = message["method"] == "tools/call"
    if not isinstance(params, dict) or (called and "params" not in message):
        return "error", INVALID_PARAMS
    if called and not (
        isinstance(params.get("name"), str)
        and isinstance(params.get("arguments", {}), dict | None)
        and isinstance(params.get("_meta", {}), dict)
    ):
        return "error", INVALID_PARAMS
    looked_at = [params.get(name) for name in ("arguments", "_meta", "inputResponses")] if called else params
    if depth(looked_at) > MAX_DEPTH + 1:
        return "error", INVALID_PARAMS
    if called:
        return "call", (message["id"], params["name"], params.get("arguments") or {}, params.get("_meta", {}))
    return "request", (message["id"], message["method"], params)


def parsed(body: bytes) -> Verdict:
    """The same verdict by the parser of the surface."""
    try:
        message = read_message(body)
        if not message.id or not message.method:
            return "silent", None
        params, meta = read_params(body, message)
    except RpcError as error:
        return "error", error.code
    number = json.loads(bytes(message.id))
    if isinstance(params, CallParams):
        return "call", (number, params.name, params.arguments, meta)
    return "request", (number, message.method, params)


numbers = st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15, allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, values, max_size=3)
call_params = st.fixed_dictionaries(
    {},
    optional={"name": texts | values, "arguments": objects | values, "_meta": objects | values, "x": values},
)
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.integers(0, 9) | texts | values,
        "method": st.sampled_from(["tools/call", "tools/list", "ping", ""]) | values,
        "params": call_params | values,
        "result": values,
        "error": values,
        "other": values,
    },
)


@given(messages, st.booleans())
@hypothesis_settings(max_examples=400, deadline=None)
def test_a_message_means_to_the_fast_parser_what_it_means_to_the_slow_one(
    message: Any, escaped: bool
) -> None:
    body = json.dumps(message, ensure_ascii=escaped).encode()
    assert parsed(body) == oracle(body)


@given(messages, st.data())
@hypothesis_settings(max_examples=400, deadline=None)
def test_a_damaged_message_is_refused_by_both_or_read_alike_by_both(
    message: Any, data: st.DataObject
) -> None:
    body = bytearray(json.dumps(message, ensure_ascii=False).encode())
    at = data.draw(st.integers(0, len(body) - 1))
    noise = data.draw(
        st.binary(max_size=2) | st.sampled_from([b"{", b"}", b'"', b",", b"\\", b"[", b" ", b"1"])
    )
    body[at : at + data.draw(st.integers(0, 3))] = noise
    ours, theirs = parsed(bytes(body)), oracle(bytes(body))
    if ours != theirs:
        assert ours[0] == "error", (bytes(body), ours, theirs)


@given(st.binary(max_size=40))
@example(b"")
@example(b"\xef\xbb\xbf{}")
@example(b"[" * 10_000)
@example(b'{"a":' * 10_000)
@example(b"[]")
@example(b"null")
@hypothesis_settings(max_examples=300, deadline=None)
def test_bytes_that_are_no_message_get_the_same_error(body: bytes) -> None:
    ours, theirs = parsed(body), oracle(body)
    assert ours == theirs or (ours[0] == "error" and theirs[0] == "error")


@given(st.integers(1, 2 * MAX_DEPTH), st.sampled_from(["list", "object"]))
@hypothesis_settings(max_examples=60, deadline=None)
def test_nesting_is_counted_alike(levels: int, kind: str) -> None:
    nested: Any = 1
    for _ in range(levels):
        nested = [nested] if kind == "list" else {"a": nested}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "t", "arguments": {"x": nested}},
    }
    body = json.dumps(call).encode()
    assert parsed(body) == oracle(body)

"""Hostile input: whatever arrives, it is answered, the connection survives, and nobody gets another's answer."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.surfaces.mcp.mcp_client import META, MODERN, client_of, encode
from tests.surfaces.mcp.mcp_small import ANNA, BERT, Cupboard, small_gate

from agent_gate.core.ports import Clock
from agent_gate.mcp.errors import PARSE_ERROR, RpcError
from agent_gate.surfaces.mcp.incoming.params import read_message, read_params
from agent_gate.surfaces.mcp.tools.sealing import LIFETIME, StateSealer, subject

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
METHODS = st.sampled_from(
    [
        "tools/call",
        "tools/list",
        "initialize",
        "ping",
        "prompts/get",
        "resources/read",
        "completion/complete",
        "x",
        "subscriptions/listen",
        "notifications/cancelled",
        "logging/setLevel",
        "server/discover",
    ]
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": METHODS},
    optional={"id": JSON, "params": JSON, "result": JSON, "error": JSON},
)


@given(st.binary(max_size=200) | JSON.map(encode) | MESSAGES.map(encode))
@settings(max_examples=300, deadline=None)
def test_any_body_is_read_or_refused_with_an_error_of_the_protocol(body: bytes) -> None:
    assert code_of(body) in (0, -32700, -32600, -32602)


async def test_numbers_of_any_length_are_refused_like_any_other(tmp_path: Path) -> None:
    async with small_gate(tmp_path, Cupboard()) as gate, client_of(gate) as client:
        assert (await client.ask("tools/list", cursor="9" * 5_000)).error["code"] == -32602
        await client.initialize()
        assert (await client.listen(last="0-" + "9" * 5_000)).status == 400
        for result in b"1e999", b'{"a":' + b"[" * 400 + b"]" * 400 + b"}":
            body = b'{"jsonrpc":"2.0","id":1,"result":%b}' % result
            assert (await client.send("POST", body, client.session_headers())).status == 202


def code_of(body: bytes) -> int:
    """The code a body is refused with, or 0."""
    try:
        message = read_message(body)
        read_params(body, message)
    except RpcError as error:
        return error.code
    return 0


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping","more":1e999}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","more":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 50_000,
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud800"}}',
        b"",
    ],
)
async def test_what_is_not_json_is_a_parse_error_and_the_next_request_is_served(
    tmp_path: Path, body: bytes
) -> None:
    async with small_gate(tmp_path, Cupboard()) as gate, client_of(gate) as client:
        reply = await client.send("POST", body)
        assert (reply.status, reply.error["code"]) == (400, PARSE_ERROR)
        assert (await client.ask("ping")).status == 200


async def test_arguments_nested_too_deep_are_refused_before_anybody_walks_them(tmp_path: Path) -> None:
    lab = Cupboard()
    lab.tool("echo")
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    async with small_gate(tmp_path, lab) as gate, client_of(gate) as client:
        assert (await client.call("lab__echo", a=deep)).error["code"] == -32602
        wide = [[] for _ in range(1000)]
        assert (await client.call("lab__echo", a=wide)).status == 200
        assert len(lab.jobs) == 1


@settings(max_examples=25, deadline=None)
@given(messages=st.lists(MESSAGES, min_size=1, max_size=8), modern=st.booleans())
async def test_no_message_is_the_gateways_own_fault(
    tmp_path_factory: pytest.TempPathFactory, messages: list[Any], modern: bool
) -> None:
    lab = Cupboard()
    lab.tool("echo")
    async with (
        small_gate(tmp_path_factory.mktemp("hostile"), lab) as gate,
        client_of(gate) as client,
    ):
        await client.initialize()
        for message in messages:
            headers = client.session_headers()
            if modern:
                headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
                if isinstance(message.get("params"), dict):
                    message["params"]["_meta"] = META
            reply = await client.send("POST", encode(message), headers)
            assert reply.status < 500
            if reply.body and "error" in reply.json:
                assert reply.json["error"]["code"] != -32603


async def test_two_callers_with_the_same_ids_never_get_each_others_answers(tmp_path: Path) -> None:
    lab = Cupboard()
    lab.tool("echo")
    async with small_gate(tmp_path, lab) as gate:

        async def ask(token: str, number: int) -> None:
            async with client_of(gate, token=token) as client:
                for turn in range(20):
                    word = f"{token}-{number}-{turn}"
                    reply = await client.ask("tools/call", number=0, name="lab__echo", arguments={"w": word})
                    assert reply.result["structuredContent"] == {"w": word}

        await asyncio.gather(*(ask(token, number) for token in (ANNA, BERT) for number in range(8)))


async def test_text_in_a_result_stays_text(tmp_path: Path) -> None:
    evil = 'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\nevent: message\n'

    async def says(job: Any) -> Any:
        await job.case.call.conversation.notify("notifications/message", {"level": "info", "data": evil})
        return evil

    lab = Cupboard()
    lab.tool("says", says)
    async with small_gate(tmp_path, lab) as gate, client_of(gate) as client:
        await client.initialize()
        events = await (await client.call("lab__says")).events()
        assert len(events) == 2
        assert events[0]["params"]["data"] == events[1]["result"]["content"][0]["text"] == evil


class Time:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds


def sealed(clock: Clock, key: bytes = b"k" * 32) -> tuple[StateSealer, str]:
    sealer = StateSealer(key, clock)
    return sealer, sealer.seal("anna", subject("tools/call", "t", {"a": 1}), "call", "id-1")


def test_a_state_opens_for_the_same_request_until_it_expires() -> None:
    clock = Time()
    sealer, state = sealed(clock)
    about = subject("tools/call", "t", {"a": 1})
    assert sealer.open(state, "anna", about).value == "id-1"
    clock.seconds += LIFETIME + 1
    with pytest.raises(RpcError):
        sealer.open(state, "anna", about)


def test_a_state_of_another_installation_is_refused() -> None:
    clock = Time()
    _, foreign = sealed(clock, b"x" * 32)
    sealer, _ = sealed(clock)
    with pytest.raises(RpcError):
        sealer.open(foreign, "anna", subject("tools/call", "t", {"a": 1}))


@given(st.integers(0, 10_000), st.integers(1, 255))
@settings(max_examples=60, deadline=None)
def test_no_flipped_bit_goes_unnoticed(place: int, change: int) -> None:
    clock = Time()
    sealer, state = sealed(clock)
    letters = bytearray(state.encode())
    letters[place % len(letters)] ^= change
    with pytest.raises(RpcError):
        sealer.open(letters.decode("latin-1"), "anna", subject("tools/call", "t", {"a": 1}))


def test_the_subject_of_a_state_does_not_depend_on_the_order_of_arguments() -> None:
    assert subject("m", "n", {"a": 1, "b": 2}) == subject("m", "n", {"b": 2, "a": 1})
    assert subject("m", "n", {"a": 1}) != subject("m", "n", {"a": "1"})
    assert msgspec.json.encode(subject("m", "n", {}))

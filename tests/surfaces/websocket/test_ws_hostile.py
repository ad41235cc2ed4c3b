"""Strangers, malformed messages and impatience: everybody gets an answer, and nobody else notices."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gateway import OTHER_TOKEN, TOKEN, Api
from tests.waiting import PATIENCE, until
from tests.wsgate import ALLOWED, LIMITED_TOKEN, Home, started
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from agent_gate.errors import InvalidArgs, by_code
from agent_gate.surfaces.websocket.messages import SocketMessage, SocketRefused, error_text, parse
from agent_gate.surfaces.websocket.surface import AgentLimits

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
METHODS = st.sampled_from(
    ["auth", "tool_request", "list_tools", "get_pending_results", "ack_results", "cancel", "x"]
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "tool": st.sampled_from(["get_state", "nothing", ""]) | JSON,
        "args": JSON,
        "idempotency_key": JSON,
        "timeout": JSON,
        "traceparent": JSON,
        "request_ids": JSON,
        "tools": JSON,
        "id": JSON,
        "token": JSON,
    },
)
REQUESTS = st.fixed_dictionaries(
    {"id": st.integers(0, 9) | st.text(min_size=1, max_size=9), "method": METHODS | JSON},
    optional={"params": PARAMS | JSON},
)


@given(JSON | REQUESTS)
def test_any_json_value_is_a_message_or_is_refused_with_an_error(value: Any) -> None:
    try:
        message = parse(json.dumps(value))
    except SocketRefused as refused:
        reply = json.loads(error_text(refused.ident, refused.error, refused.code))
        assert reply["error"]["code"] in (-32600, -32700)
        assert reply["id"] is None or reply["id"] == value["id"]
    else:
        assert message == SocketMessage(value.get("id"), value["method"], value.get("params") or {})


@given(st.text() | st.binary())
def test_any_bytes_at_all_are_a_message_or_are_refused(data: str | bytes) -> None:
    try:
        message: object = parse(data)
    except SocketRefused as refused:
        message = refused.error
    assert isinstance(message, SocketMessage | InvalidArgs)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"id":1,"method":"x","params":{"a":' + "[" * 64 + "]" * 64 + "}}",
        '{"id":1,"id":2,"method":"list_tools"}',
        '{"id":1,"method":"tool_request","params":{"tool":"get_state","args":{"a":1,"a":2}}}',
        '{"id":NaN,"method":"list_tools"}',
        '{"id":1,"method":"x","params":{"a":Infinity}}',
        '{"id":1,"method":"x","params":{"a":1e999}}',
        r'{"id":1,"method":"x","params":{"a":"\ud800"}}',
        "",
        "\ufeff{}",
        '{"id":1}{"id":2}',
    ],
)
def test_json_that_two_parsers_could_read_differently_is_a_parse_error(text: str) -> None:
    with pytest.raises(SocketRefused) as caught:
        parse(text)
    assert caught.value.code == -32700


def test_every_error_of_the_tree_has_its_code_and_its_whole_form_on_the_wire() -> None:
    for cls in by_code().values():
        error = cls("It went wrong")
        reply = json.loads(error_text(1, error))
        assert reply["error"] == {"code": cls.rpc, "message": "It went wrong", "data": error.as_dict()}


async def test_every_message_with_an_id_is_answered_under_its_id_and_the_connection_survives(
    tmp_path: Path, api: Api
) -> None:
    async def exchange(home: Home, messages: list[dict[str, Any]]) -> None:
        async with home.agent() as agent:
            for message in messages:
                if message.get("method") == "auth":
                    continue
                await agent.socket.send(json.dumps(message))
                while home.open:
                    await home.answer("deny")
                reply = await asyncio.wait_for(agent.reply(), PATIENCE)
                assert reply["id"] == message["id"]
                assert ("result" in reply) != ("error" in reply)

    async with started(tmp_path, api) as home:
        loop = asyncio.get_running_loop()

        @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(st.lists(REQUESTS, min_size=1, max_size=8))
        def send_all(messages: list[dict[str, Any]]) -> None:
            asyncio.run_coroutine_threadsafe(exchange(home, messages), loop).result(20)

        await asyncio.to_thread(send_all)


async def test_what_is_no_request_is_answered_with_id_null(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as agent:
        cases = {
            "[1,2,3]": -32600,
            '[{"jsonrpc":"2.0","id":1,"method":"list_tools"}]': -32600,
            '"text"': -32600,
            "{}": -32600,
            '{"id":{"a":1},"method":"list_tools"}': -32600,
            '{"id":true,"method":"list_tools"}': -32600,
            "[" * 100_000: -32700,
            "{nonsense": -32700,
        }
        for text, code in cases.items():
            await agent.socket.send(text)
            reply = await agent.reply()
            assert (reply["id"], reply["error"]["code"]) == (None, code), text[:40]
        missing = await agent.ask("tool_request", {"tool": "get_state", "args": ALLOWED}, ident=None)
        assert missing["id"] is None
        assert (missing["error"]["code"], missing["error"]["message"]) == (-32600, "Missing request id")
        unknown = await agent.ask("no_such_method", ident=4)
        assert (unknown["id"], unknown["error"]["code"]) == (4, -32601)
        await agent.send(method="no_such_notification")
        assert (await agent.call("get_state", ALLOWED, ident=5))["id"] == 5
        assert api.requests


async def test_the_first_message_must_be_auth_with_a_good_token(tmp_path: Path, api: Api) -> None:
    async def refused(home: Home, text: str) -> tuple[Any, int, str, int]:
        async with home.stranger() as stranger:
            await stranger.socket.send(text)
            reply = await stranger.reply()
            return reply["id"], reply["error"]["code"], reply["error"]["message"], await stranger.closed()

    async with started(tmp_path, api) as home:
        early = '{"id":1,"method":"list_tools"}'
        assert await refused(home, early) == (1, -32005, "Not authenticated", 1008)
        wrong = '{"id":"auth-1","method":"auth","params":{"token":"wrong"}}'
        assert await refused(home, wrong) == ("auth-1", -32005, "Invalid token", 1008)
        for token in ([], None, 7, {"a": 1}):
            auth = {"id": 2, "method": "auth", "params": {"token": token}}
            answer = await refused(home, json.dumps(auth))
            assert answer == (2, -32005, "Invalid token", 1008)
        assert (await refused(home, "{nonsense"))[1] == -32700
        large = json.dumps({"id": 3, "method": "auth", "params": {"token": "x" * 70_000}})
        assert (await refused(home, large))[1:3] == (-32005, "Not authenticated")


async def test_a_stranger_who_says_nothing_is_closed_in_time(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        home.limit(auth_seconds=0.2)
        async with home.stranger() as one, home.agent() as agent, home.stranger() as two:
            for stranger in (one, two):
                reply = await stranger.reply()
                assert reply["id"] is None
                assert reply["error"]["code"] == -32005
                assert reply["error"]["message"] == "Authentication timeout"
                assert await stranger.closed() == 1008
            assert (await agent.call("get_state", ALLOWED))["result"]["status"] == "executed"


async def test_three_hundred_silent_strangers_do_not_keep_a_good_agent_out(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        sockets = await asyncio.gather(*(connect(home.url, compression=None, proxy=None) for _ in range(300)))
        async with asyncio.timeout(AgentLimits().auth_seconds - 1), home.agent() as agent:
            assert (await agent.call("get_state", ALLOWED))["result"]["status"] == "executed"
        assert len(home.gateway.ways_in.websocket._strangers) <= 256
        for socket in sockets:
            socket.transport.abort()


async def test_guessing_tokens_gets_slow_but_the_right_token_still_works(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        codes = []
        for number in range(20):
            async with home.stranger() as stranger:
                reply = await stranger.ask("auth", {"token": f"guess-{number}"})
                codes.append(reply["error"]["code"])
                assert await stranger.closed() == 1008
        assert codes == [-32005] * 10 + [-32006] * 10
        assert reply["error"]["data"]["retry_after"] > 0
        with pytest.raises(InvalidStatus) as caught:
            await connect(home.url, additional_headers={"Authorization": "Bearer guess"}, proxy=None)
        assert caught.value.response.status_code == 429
        assert int(caught.value.response.headers["retry-after"]) > 0
        async with home.agent() as agent:
            assert (await agent.call("get_state", ALLOWED))["result"]["status"] == "executed"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/nowhere", {}, 404),
        ("/", {"Authorization": "Bearer wrong"}, 401),
        ("/", {"Origin": "https://evil.example"}, 403),
        ("/ws", {"Origin": "http://localhost.evil.example"}, 403),
    ],
)
async def test_an_upgrade_that_must_not_be_is_refused_before_there_is_a_websocket(
    tmp_path: Path, api: Api, path: str, headers: dict[str, str], status: int
) -> None:
    async with started(tmp_path, api) as home:
        with pytest.raises(InvalidStatus) as caught:
            await connect(home.url + path, additional_headers=headers, proxy=None)
        assert caught.value.response.status_code == status


async def test_compression_is_never_agreed_to(tmp_path: Path, api: Api) -> None:
    async with (
        started(tmp_path, api) as home,
        connect(home.url, compression="deflate", proxy=None) as socket,
    ):
        assert socket.protocol.extensions == []


async def test_a_message_over_the_size_limit_closes_only_its_own_connection(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home, home.agent() as large, home.agent() as small:
        await large.socket.send("x" * (home.gateway.listeners.public.limits.message_bytes + 1))
        assert await large.closed() == 1009
        assert (await small.call("get_state", ALLOWED))["result"]["status"] == "executed"


async def test_an_agent_that_sends_too_fast_is_told_so_and_slowed(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        home.limit(messages_per_second=20)
        async with home.agent(LIMITED_TOKEN) as fast, home.agent() as unlimited:
            for number in range(60):
                await fast.send(id=number, method="list_tools")
            replies = [await fast.reply() for _ in range(60)]
            limited = [reply for reply in replies if reply.get("error", {}).get("code") == -32006]
            assert limited
            assert {reply["id"] for reply in replies} == set(range(60))
            for number in range(60):
                await unlimited.send(id=number, method="list_tools")
            answers = [await unlimited.reply() for _ in range(60)]
            assert all("result" in answer for answer in answers)


async def test_a_connection_holds_only_so_many_open_requests(tmp_path: Path, api: Api) -> None:
    async with started(tmp_path, api) as home:
        home.limit(in_flight=3)
        async with home.agent() as agent:
            for ident in range(3):
                await agent.request("turn_on", {"entity_id": f"light.{ident}"}, ident=ident)
            await home.asked(3)
            fourth = await agent.call("get_state", ALLOWED, ident=9)
            assert (fourth["id"], fourth["error"]["code"]) == (9, -32006)
            await home.answer()
            assert (await agent.reply())["id"] in range(3)
            assert "result" in await agent.call("get_state", ALLOWED, ident=9)


async def test_a_reply_that_waits_for_its_turn_still_counts_as_an_open_request(
    tmp_path: Path, api: Api
) -> None:
    api.replies["/states/sensor.temp"] = (200, {}, json.dumps({"text": "x" * 900_000}).encode())
    async with started(tmp_path, api) as home:
        home.limit(in_flight=3)
        async with home.agent() as agent:
            [here] = home.gateway.ways_in.websocket._agents
            agent.socket.transport.pause_reading()
            sent = 0

            async def three_wait() -> bool:
                nonlocal sent
                if here.working < 3:
                    await agent.request("get_state", ALLOWED, ident=(sent := sent + 1))
                    return False
                return not home.gateway.calls.running()

            await until(three_wait)
            assert len(home.gateway.ways_in.websocket._tasks.running) == 3
            await agent.request("get_state", ALLOWED, ident="one too many")
            agent.socket.transport.resume_reading()
            codes = {}
            for _ in range(sent + 1):
                reply = await agent.reply()
                codes[reply["id"]] = reply.get("error", {}).get("code", 0)
            assert codes.pop("one too many") == -32006


async def test_the_other_methods_are_as_limited_and_take_no_place_of_tool_requests(
    tmp_path: Path, api: Api
) -> None:
    async with started(tmp_path, api) as home:
        home.limit(in_flight=2)
        waits = asyncio.Event()

        async def held(*_: Any) -> bytes:
            await waits.wait()
            return b"{}"

        home.gateway.ways_in.websocket._extra = {"browse": held}
        async with home.agent() as agent:
            for ident in "a", "b":
                await agent.send(id=ident, method="browse", params={})
            third = await agent.ask("browse", ident="c")
            assert (third["id"], third["error"]["code"]) == ("c", -32006)
            assert "result" in await agent.call("get_state", ALLOWED, ident=9)
            waits.set()
            assert {(await agent.reply())["id"] for _ in range(2)} == {"a", "b"}
            assert "result" in await agent.ask("browse", ident="d")


async def test_an_agent_that_does_not_read_is_closed_and_the_others_are_served(
    tmp_path: Path, api: Api
) -> None:
    api.replies["/states/sensor.temp"] = (200, {}, json.dumps({"text": "x" * 900_000}).encode())

    async def never_reading(home: Home) -> None:
        async with home.agent(OTHER_TOKEN) as good:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", home.gateway.listeners.public.port, limit=1024
            )
            head = (
                "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {'A' * 22}==\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
            )
            writer.write(head.encode())
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.pause_reading()
            for number in range(40):
                message = {
                    "id": number,
                    "method": "tool_request",
                    "params": {"tool": "get_state", "args": ALLOWED},
                }
                data = json.dumps(message).encode()
                writer.write(bytes([0x81, 0xFE]) + len(data).to_bytes(2, "big") + bytes(4) + data)
            await until(lambda: home.gateway.ways_in.websocket.connected == 1)
            assert (await good.ask("list_tools"))["result"]["tools"]
            writer.transport.abort()

    async with started(tmp_path, api) as home:
        home.limit(room_seconds=0.1)
        await never_reading(home)


async def test_each_dropped_connection_is_one_line_and_a_thousand_are_few(
    tmp_path: Path, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="agent_gate.websocket"):
        async with started(tmp_path, api) as home:
            async with home.agent():
                pass
            await until(lambda: len(lines(caplog)) == 1)
            assert lines(caplog)[0].agent == "first"
            headers = {"Authorization": f"Bearer {TOKEN}"}
            sockets = await asyncio.gather(
                *(
                    connect(home.url, additional_headers=headers, compression=None, proxy=None)
                    for _ in range(200)
                )
            )
            for socket in sockets:
                socket.transport.abort()
            await until(lambda: home.gateway.ways_in.websocket.connected == 0)
            assert len(lines(caplog)) <= 60
    folded = sum(getattr(record, "count", 1) for record in lines(caplog))
    assert folded == 201


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if "disconnected" in record.message]

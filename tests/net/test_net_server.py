"""The listener with well-meaning clients: order, keep-alive, HEAD, 100-continue, streams, drain."""

import asyncio
import gc
import itertools
import json
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.net.rawhttp import FAST, GET, HOST, ask, connected, echo, serving
from tests.waiting import PATIENCE, until

from agent_gate.errors import ConfigError, InvalidArgs, RateLimited
from agent_gate.net.connection import Connection
from agent_gate.net.http import Request, Response, StreamResponse
from agent_gate.net.server import Limits, Server
from agent_gate.net.unixpath import reachable

POST = b"POST /a?b=c HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /a HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
)


async def test_a_request_reaches_the_handler_with_its_raw_target_headers_and_body() -> None:
    seen: list[Request] = []

    async def handler(request: Request) -> Response:
        seen.append(request)
        return Response(200, b"{}")

    async with serving(handler) as server:
        await ask(server, b"PUT /x%2Fy?q=%41&r=a+b HTTP/1.1\r\n" + HOST + b"X-One:  1 \r\nX-One: 2\r\n\r\n")
    request = seen[0]
    assert (request.method, request.path, request.query) == ("PUT", "/x%2Fy", "q=%41&r=a+b")
    assert request.params() == {"q": "A", "r": "a b"}
    assert request.header(b"x-one") == b"1, 2"
    assert request.header(b"x-two") is None
    assert (request.peer, request.secure, request.body) == ("127.0.0.1", False, b"")


@pytest.mark.parametrize("query", ["a=%", "a=%zz", "a=%ff", "a=1&a=2"])
def test_a_query_that_can_be_read_in_two_ways_is_refused(query: str) -> None:
    with pytest.raises(InvalidArgs):
        Request("GET", f"/?{query}".encode(), {}).params()


async def test_requests_on_one_connection_are_answered_in_order_one_at_a_time() -> None:
    running, all_sent = 0, asyncio.Event()

    async def handler(request: Request) -> Response:
        nonlocal running
        running += 1
        assert running == 1
        await all_sent.wait()
        await asyncio.sleep(0)
        running -= 1
        return Response(200, request.path.encode())

    async with serving(handler, limits=Limits(pipelined=4)) as server, connected(server) as client:
        await client.send(b"".join(b"GET /%d HTTP/1.1\r\n" % n + HOST + b"\r\n" for n in range(50)))
        all_sent.set()
        for n in range(50):
            assert (await client.answer()).body == b"/%d" % n


async def test_a_long_pipelined_burst_is_answered_whole_though_the_queue_is_bounded() -> None:
    body = b"x" * 3000
    one = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 3000\r\n\r\n" + body
    limits = Limits(pipelined=2, body_bytes=4000)
    async with serving(limits=limits) as server, connected(server) as client:
        sending = asyncio.create_task(client.send(one * 200))
        for _ in range(200):
            assert (await client.answer()).status == 200
        await sending


@pytest.mark.parametrize("whole", [POST, CHUNKED])
async def test_a_request_split_at_any_byte_is_the_same_request(whole: bytes) -> None:
    async with serving() as server:
        answers = set()
        for cut in range(1, len(whole)):
            async with connected(server) as client:
                await client.send(whole[:cut])
                await asyncio.sleep(0)
                await client.send(whole[cut:])
                answers.add((await client.answer()).body)
        assert [json.loads(answer)["body"] for answer in answers] == ["hello"]


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 2 * len(POST + CHUNKED)), max_size=8))
async def test_pipelined_requests_split_anywhere_give_the_same_answers(cuts: list[int]) -> None:
    stream = (POST + CHUNKED) * 2
    async with serving() as server, connected(server) as client:
        edges = [0, *sorted(cuts), len(stream)]
        for start, end in itertools.pairwise(edges):
            await client.send(stream[start:end])
            await asyncio.sleep(0)
        targets = [json.loads((await client.answer()).body)["target"] for _ in range(4)]
        assert targets == ["/a?b=c", "/a", "/a?b=c", "/a"]


async def test_head_is_answered_with_the_length_but_no_body() -> None:
    async with serving() as server, connected(server) as client:
        await client.send(b"HEAD / HTTP/1.1\r\n" + HOST + b"\r\n" + GET)
        first = await client.answer(bodiless=True)
        assert int(first.headers["content-length"]) > 0
        assert json.loads((await client.answer()).body)["method"] == "GET"


async def test_a_204_has_neither_length_nor_body() -> None:
    async def handler(request: Request) -> Response:
        return Response(204)

    async with serving(handler) as server, connected(server) as client:
        await client.send(GET + GET)
        for _ in range(2):
            status, headers = await client.head()
            assert status == 204
            assert not headers.keys() & {"content-length", "content-type"}


async def test_a_client_that_asks_first_is_told_to_continue_after_earlier_answers() -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.method == "GET":
            await gate.wait()
        return Response(200, request.body)

    async with serving(handler) as server, connected(server) as client:
        expecting = b"POST / HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        await client.send(GET + expecting)
        gate.set()
        assert (await client.answer()).body == b""
        assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        await client.send(b"ok")
        assert (await client.answer()).body == b"ok"


async def test_http_1_0_and_connection_close_end_after_one_answer() -> None:
    async with serving() as server:
        for request in (
            b"GET / HTTP/1.0\r\n\r\n",
            b"GET / HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n",
        ):
            async with connected(server) as client:
                await client.send(request)
                answer = await client.answer()
                assert (answer.status, answer.headers["connection"]) == (200, "close")
                assert await client.ended()


async def test_an_upgrade_to_a_protocol_we_do_not_speak_is_ignored_and_its_body_still_read() -> None:
    upgrade = b"POST / HTTP/1.1\r\n" + HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    async with serving() as server:
        for cut in (0, 60, 140, 150):
            async with connected(server) as client:
                whole = (
                    upgrade
                    + b"HTTP2-Settings: AAMAAABkAAQ\r\nContent-Length: 10\r\n\r\n"
                    + b"0123456789"
                    + GET
                )
                await client.send(whole[:cut])
                await asyncio.sleep(0)
                await client.send(whole[cut:])
                assert json.loads((await client.answer()).body)["body"] == "0123456789"
                assert json.loads((await client.answer()).body)["method"] == "GET"


async def test_a_cancellation_that_a_handler_let_escape_is_a_500_and_the_connection_goes_on() -> None:
    async def handler(request: Request) -> Response:
        other: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        other.cancel()
        await other
        raise AssertionError

    async with serving(handler) as server, connected(server) as client:
        for _ in range(2):
            await client.send(GET)
            async with asyncio.timeout(PATIENCE):
                assert (await client.answer()).status == 500


async def test_a_handlers_fault_is_a_500_that_tells_nothing_and_a_log_that_tells_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(request: Request) -> Response:
        raise RuntimeError("the secret is 42")

    with caplog.at_level(logging.ERROR, "agent_gate.net"):
        async with serving(handler) as server, connected(server) as client:
            await client.send(GET)
            answer = await client.answer()
            assert answer.status == 500
            assert json.loads(answer.body)["error"]["code"] == "INTERNAL"
            assert b"42" not in answer.body
            await client.send(GET)
            assert (await client.answer()).status == 500
    assert "the secret is 42" in caplog.text


async def test_an_error_of_ours_keeps_its_status_and_says_when_to_come_back() -> None:
    async def handler(request: Request) -> Response:
        raise RateLimited("too many calls; wait", retry_after=7)

    async with serving(handler) as server:
        answer = await ask(server, GET)
        assert (answer.status, answer.headers["retry-after"]) == (429, "7")
        assert json.loads(answer.body)["error"]["code"] == "RATE_LIMITED"


async def test_a_response_header_with_a_line_break_is_never_sent(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"{}", [(b"x", b"1\r\nset-cookie: a=b")])

    async with serving(handler) as server:
        answer = await ask(server, GET)
        assert answer.status == 500
        assert "set-cookie" not in answer.headers


async def test_a_stream_is_chunked_and_the_connection_lives_on() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for n in range(3):
            yield b"data: %d\n\n" % n
            await asyncio.sleep(0)
        yield b""

    async def handler(request: Request) -> StreamResponse:
        return StreamResponse(200, chunks(), [(b"cache-control", b"no-store")])

    async with serving(handler) as server, connected(server) as client:
        for _ in range(2):
            await client.send(GET)
            answer = await client.answer()
            assert answer.body == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"
            assert answer.headers["content-type"] == "text/event-stream"
        await client.send(b"GET / HTTP/1.0\r\n\r\n")
        last = await client.answer()
        assert "transfer-encoding" not in last.headers
        assert last.body == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


async def test_a_stream_that_fails_is_cut_so_that_the_client_can_tell(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"half"
        raise RuntimeError("broken source")

    async def handler(request: Request) -> StreamResponse:
        return StreamResponse(200, chunks())

    async with serving(handler) as server, connected(server) as client:
        await client.send(GET)
        await client.head()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError, ValueError)):
            await client._chunks()
    assert "broken source" in caplog.text


async def test_a_stream_waits_for_its_reader() -> None:
    made = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal made
        for _ in range(2000):
            made += 1
            yield b"x" * 65536

    async def handler(request: Request) -> StreamResponse:
        return StreamResponse(200, chunks())

    async with serving(handler) as server, connected(server) as client:
        await client.send(GET)
        await client.head()
        before = -1
        while before != made:
            before = made
            await asyncio.sleep(0.05)
        assert made < 1000
        for _ in range(40):
            await client.reader.readexactly(int(await client.reader.readline(), 16) + 2)
        await until(lambda: made > before)


async def test_a_lost_client_is_told_to_the_handler_which_runs_on() -> None:
    started, finished, told = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        request.on_disconnect(told.set)
        started.set()
        await told.wait()
        assert not request.connected
        again: list[int] = []
        request.on_disconnect(lambda: again.append(1))
        assert again == [1]
        finished.set()
        return Response(200, b"too late")

    async with serving(handler) as server:
        async with connected(server) as client:
            await client.send(GET)
            await started.wait()
        await finished.wait()


async def test_nobody_is_told_of_a_disconnect_after_the_answer() -> None:
    told: list[int] = []

    async def handler(request: Request) -> Response:
        request.on_disconnect(lambda: told.append(1))
        return Response(200, b"{}")

    async with serving(handler) as server:
        await ask(server, GET)
        await until(lambda: not server.connections)
    assert told == []


async def test_a_stream_without_client_is_closed() -> None:
    ended: list[str] = []
    gone = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await gone.wait()
            await asyncio.Event().wait()
        except (asyncio.CancelledError, GeneratorExit):
            ended.append("cancelled")
            raise

    async def handler(request: Request) -> StreamResponse:
        request.on_disconnect(gone.set)
        return StreamResponse(200, chunks())

    async with serving(handler) as server:
        async with connected(server) as client:
            await client.send(GET)
            await client.reader.readuntil(b"first")
        await until(lambda: bool(ended))
    assert ended == ["cancelled"]


@pytest.mark.parametrize("cut", [0, 1, 10, 40, len(POST) - 1])
async def test_a_client_that_leaves_in_mid_request_leaves_nothing_behind(cut: int) -> None:
    async with serving() as server:
        async with connected(server) as client:
            await client.send(POST[:cut])
            await until(lambda: len(server.connections) == 1)
        assert await until(lambda: not server.connections)


async def test_draining_answers_what_is_in_flight_and_takes_nothing_new() -> None:
    started, gate = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        started.set()
        await gate.wait()
        return Response(200, b"done")

    server = Server(handler)
    await server.start("127.0.0.1", 0)
    async with connected(server) as busy, connected(server) as idle:
        await busy.send(GET)
        await started.wait()
        draining = asyncio.create_task(server.drain(5))
        assert await idle.ended()
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", server.port)
        gate.set()
        answer = await busy.answer()
        assert (answer.body, answer.headers["connection"]) == (b"done", "close")
        await busy.close()
        await draining


async def test_draining_waits_for_a_request_whose_client_has_left() -> None:
    started, go_on, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        left = asyncio.Event()
        request.on_disconnect(left.set)
        started.set()
        await left.wait()
        await go_on.wait()
        finished.set()
        return Response(200, b"{}")

    async with serving(handler) as server:
        async with connected(server) as client:
            await client.send(GET)
            await started.wait()
        await until(lambda: not server.connections)
        drain = asyncio.create_task(server.drain(5))
        await until(lambda: server.draining)
        assert not drain.done()
        go_on.set()
        await drain
        assert finished.is_set()


async def test_draining_gives_up_on_a_handler_that_does_not_end() -> None:
    cancelled = asyncio.Event()

    async def handler(request: Request) -> Response:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Response(200)

    server = Server(handler)
    await server.start("127.0.0.1", 0)
    async with connected(server) as client:
        await client.send(GET)
        await until(lambda: any(c.active for c in server.connections))
        await server.drain(0.05)
        assert cancelled.is_set()
        assert await client.ended()


async def test_a_taken_port_is_named_in_the_error() -> None:
    async with serving() as server:
        with pytest.raises(ConfigError, match=f"127.0.0.1:{server.port}"):
            await Server(echo).start("127.0.0.1", server.port)


async def test_a_full_listener_turns_new_connections_away() -> None:
    async with serving(limits=Limits(connections=1)) as server, connected(server) as first:
        await first.send(GET)
        assert (await first.answer()).status == 200
        async with connected(server) as second:
            assert await second.ended()


async def test_an_idle_connection_is_closed_after_a_while() -> None:
    async with serving(limits=FAST) as server, connected(server) as client:
        await client.send(GET)
        assert (await client.answer()).status == 200
        assert await client.ended()


async def test_a_socket_whose_path_is_too_long_for_the_kernel_is_served_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 20) / ("path" * 20)
    folder.mkdir(parents=True, mode=0o700)
    server = Server(echo)
    await server.start_unix(folder / "admin.sock")
    try:
        with reachable(folder / "admin.sock") as name:
            reader, writer = await asyncio.open_unix_connection(name)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
    finally:
        await server.drain(1)


async def test_a_connection_that_ended_leaves_nothing_to_the_collector() -> None:
    async with serving() as server:
        gc.collect()
        gc.disable()
        try:
            await ask(server, POST)
            assert await until(lambda: not any(isinstance(one, Connection) for one in gc.get_objects()))
        finally:
            gc.enable()


async def test_the_time_in_which_the_gateway_got_no_cpu_is_not_held_against_a_client() -> None:
    async with serving(limits=FAST) as server, connected(server) as client:
        await client.send(GET[:10])
        await until(lambda: any(one.feeding for one in server.connections))  # type: ignore[union-attr]
        time.sleep(3 * FAST.header_seconds)  # noqa: ASYNC251 - the loop is what must stand still
        swept = server.now
        await until(lambda: server.now > swept)
        await client.send(GET[10:])
        assert (await client.answer()).status == 200

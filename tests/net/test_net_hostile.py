"""The listener with hostile clients: smuggling, oversize, slowness, and hosts it does not answer to."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.net.rawhttp import FAST, GET, HOST, ask, connected, echo, serving
from tests.waiting import until

from agent_gate.net.connection import Connection
from agent_gate.net.http import Request, Response, StreamResponse
from agent_gate.net.server import Limits

CHUNKED = b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
SMUGGLING = {
    "length beside transfer coding": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "transfer coding beside length": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "two equal lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "two lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 0\r\n\r\nabc",
    "a list of lengths": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 3, 3\r\n\r\nabc",
    "a signed length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: +3\r\n\r\nabc",
    "a negative length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    "a hex length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 0x3\r\n\r\nabc",
    "an empty length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: \r\n\r\n",
    "an overflowing length": b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999999999999999\r\n\r\n",
    "an unknown transfer coding": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding before chunked": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "identity as transfer coding": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: identity\r\n\r\nabc",
    "a second transfer coding": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "chunked not last": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n",
    "a vertical tab before chunked": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "chunked in HTTP/1.0": b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a bare LF after the request line": b"GET / HTTP/1.1\nHost: 127.0.0.1\n\n",
    "a bare LF after a header": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\nX: b\r\n\r\n",
    "a bare CR in a header": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\rX: b\r\n\r\n",
    "a space before the colon": b"GET / HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
    "a folded header": b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    "a space before the first header": b"GET / HTTP/1.1\r\n Host: 127.0.0.1\r\n\r\n",
    "a NUL in a header": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\0\r\n\r\n",
    "an empty header name": b"GET / HTTP/1.1\r\n" + HOST + b": x\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two authorizations": b"GET / HTTP/1.1\r\n" + HOST + b"Authorization: a\r\nauthorization: b\r\n\r\n",
    "an absolute target": b"GET http://127.0.0.1/ HTTP/1.1\r\n" + HOST + b"\r\n",
    "a fragment": b"GET /a#b HTTP/1.1\r\n" + HOST + b"\r\n",
    "a raw byte in the target": b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    "a tab in the target": b"GET /a\tb HTTP/1.1\r\n" + HOST + b"\r\n",
    "a bad chunk size": CHUNKED + b"zz\r\n",
    "a space after the chunk size": CHUNKED + b"3 \r\nabc\r\n0\r\n\r\n",
    "a bare LF after the chunk size": CHUNKED + b"3\nabc\r\n0\r\n\r\n",
    "a bare LF in a chunk extension": CHUNKED + b"3;a\nb\r\nabc\r\n0\r\n\r\n",
    "a chunk longer than it says": CHUNKED + b"3\r\nabcX0\r\n\r\n",
    "an overflowing chunk size": CHUNKED + b"ffffffffffffffffff\r\n",
    "a trailer": CHUNKED + b"0\r\nAuthorization: Bearer x\r\n\r\n",
    "a chunked body with an upgrade": b"POST / HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a WebSocket's upgrade with a body": b"GET /ws HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc",
    "a WebSocket's upgrade with chunks": b"GET /ws HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: WebSocket\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a method in lower case": b"get / HTTP/1.1\r\n" + HOST + b"\r\n",
    "no version": b"GET /\r\n\r\n",
    "noise": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}  # fmt: skip


@pytest.mark.parametrize("name", SMUGGLING)
async def test_what_two_parsers_could_read_differently_is_refused_and_the_connection_ends(name: str) -> None:
    handled: list[Request] = []

    async def handler(request: Request) -> Response:
        handled.append(request)
        return Response(200)

    async with serving(handler, limits=FAST) as server, connected(server) as client:
        await client.send(SMUGGLING[name] + GET)
        answer = await client.answer()
        assert answer.status in (400, 501, 505), answer
        assert answer.headers["connection"] == "close"
        assert "code" in json.loads(answer.body)["error"]
        assert await client.ended()
    assert handled == []


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"CONNECT a:80 HTTP/1.1", 405),
        (b"TRACE / HTTP/1.1", 405),
        (b"GET / HTTP/2.0", 505),
        (b"GET / HTTP/1.2", 400),
    ],
)
async def test_methods_and_versions_we_do_not_speak_are_refused(request_line: bytes, status: int) -> None:
    async with serving() as server:
        assert (await ask(server, request_line + b"\r\n" + HOST + b"\r\n")).status == status


async def test_another_expectation_than_continue_is_refused() -> None:
    async with serving() as server:
        answer = await ask(
            server, b"POST / HTTP/1.1\r\n" + HOST + b"Expect: tea\r\nContent-Length: 1\r\n\r\n"
        )
        assert answer.status == 417


async def test_a_broken_request_after_good_ones_is_refused_after_their_answers() -> None:
    async with serving() as server, connected(server) as client:
        await client.send(GET + GET + b"GET / HTTP/1.1\r\nHost : x\r\n\r\n" + GET)
        assert [(await client.answer()).status for _ in range(3)] == [200, 200, 400]
        assert await client.ended()


@settings(max_examples=60, deadline=None)
@given(
    data=st.binary(max_size=200), prefix=st.sampled_from([b"", b"GET ", b"POST / HTTP/1.1\r\n", CHUNKED, GET])
)
async def test_noise_never_breaks_the_listener(data: bytes, prefix: bytes) -> None:
    async with serving(limits=FAST) as server:
        async with connected(server) as client:
            await client.send(prefix + data)
            client.writer.write_eof()
            await client.ended()
        assert (await ask(server, GET)).status == 200


@pytest.mark.parametrize("step", [1, 1000, 2990, 10**6])
async def test_a_head_over_the_limit_is_a_431_however_it_arrives(step: int) -> None:
    head = b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 3000 + b"\r\n\r\n"
    async with serving(limits=Limits(header_bytes=2048)) as server, connected(server) as client:
        for start in range(0, len(head), step):
            await client.send(head[start : start + step])
            if step < 1000:
                await asyncio.sleep(0)
        assert (await client.answer()).status == 431


async def test_a_head_that_never_ends_is_a_431() -> None:
    async with serving(limits=Limits(header_bytes=2048)) as server, connected(server) as client:
        await client.send(b"GET / HTTP/1.1\r\n" + HOST + b"X: ")
        for _ in range(5):
            await client.send(b"a" * 1000)
            await asyncio.sleep(0.01)
        assert (await client.answer()).status == 431


async def test_a_client_that_pipelines_into_a_busy_handler_is_held_back() -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        await gate.wait()
        return Response(200, b"{}")

    async with serving(handler) as server, connected(server) as client:
        client.writer.write(GET * 500_000)
        await until(lambda: any(not one.transport.is_reading() for one in server.connections))
        assert client.writer.transport.get_write_buffer_size() > 1_000_000
        (connection,) = server.connections
        assert len(connection.backlog) < 1_000_000
        gate.set()
        assert (await client.answer()).status == 200
        client.writer.transport.abort()


async def test_a_head_just_under_the_limit_passes_even_beside_a_large_body() -> None:
    big = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 40000\r\n\r\n" + b"x" * 40000
    head = b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 30000 + b"\r\n\r\n"
    async with serving() as server, connected(server) as client:
        await client.send(big + head + big + head)
        assert [(await client.answer()).status for _ in range(4)] == [200] * 4


@pytest.mark.parametrize("at_once", [True, False])
async def test_more_headers_than_anybody_needs_are_a_431(at_once: bool) -> None:
    head = b"GET / HTTP/1.1\r\n" + HOST + b"".join(b"X-%d: a\r\n" % n for n in range(300)) + b"\r\n"
    async with serving() as server, connected(server) as client:
        for piece in [head] if at_once else [head[:2000], head[2000:]]:
            await client.send(piece)
            await asyncio.sleep(0)
        answer = await client.answer()
        assert (answer.status, "100 headers" in answer.body.decode()) == (431, True)
        assert await client.ended()


@pytest.mark.parametrize("line", [b"3;" + b"x" * 10_000_000, b"0" * 10_000_000 + b"3"])
async def test_a_chunk_announced_by_megabytes_is_refused_before_they_are_all_read(line: bytes) -> None:
    async with serving() as server, connected(server) as client:
        client.writer.write(CHUNKED + line + b"\r\nabc\r\n0\r\n\r\n")
        answer = await client.answer()
        assert answer.status == 400
        client.writer.transport.abort()


async def test_a_body_in_chunks_of_one_byte_is_read() -> None:
    body = bytes(range(256)) * 200
    async with serving() as server:
        data = CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        answer = await ask(server, data)
        assert json.loads(answer.body)["body"].encode("latin-1") == body


async def test_no_answer_lets_a_browser_guess_its_type() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"

    async def handler(request: Request) -> Response | StreamResponse:
        return StreamResponse(200, chunks()) if request.path == "/stream" else Response(200, b"{}")

    async with serving(handler) as server:
        for sent in (
            GET,
            GET.replace(b"/ ", b"/stream ", 1),
            b"nonsense\r\n\r\n",
            b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n",
        ):
            assert (await ask(server, sent)).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 101\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 101\r\n\r\n",
        CHUNKED + b"65\r\n" + b"x" * 101 + b"\r\n",
    ],
)
async def test_a_body_over_the_limit_is_a_413_before_it_is_read(request_bytes: bytes) -> None:
    async with serving(limits=Limits(body_bytes=100)) as server:
        assert (await ask(server, request_bytes)).status == 413


async def test_the_refusal_of_a_large_body_survives_a_client_that_goes_on_sending() -> None:
    limits = Limits(body_bytes=100, linger_seconds=1, tick=0.05)
    async with serving(limits=limits) as server, connected(server) as client:
        client.writer.write(
            b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 3000000\r\n\r\n" + b"x" * 3_000_000
        )
        assert (await client.answer()).status == 413


async def test_a_slow_head_is_cut_off() -> None:
    async with serving(limits=FAST) as server, connected(server) as client:
        await client.send(GET[:-4])
        assert (await client.answer()).status == 408
        assert await client.ended()


async def test_a_connection_that_says_nothing_is_closed_without_an_answer() -> None:
    async with serving(limits=FAST) as server, connected(server) as client:
        assert await client.ended()


async def test_a_body_that_stops_or_only_trickles_is_cut_off() -> None:
    async with serving(limits=FAST) as server, connected(server) as stops, connected(server) as trickles:
        for client in (stops, trickles):
            await client.send(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\nab")
        answer = asyncio.create_task(trickles.answer())
        while not answer.done():
            trickles.writer.write(b"x")
            await asyncio.sleep(0.02)
        assert (await answer).status == 408
        assert (await stops.answer()).status == 408


async def test_a_slow_but_steady_body_is_let_through() -> None:
    async with serving(limits=FAST) as server, connected(server) as client:
        await client.send(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 30000\r\n\r\n")
        for _ in range(15):
            await client.send(b"x" * 2000)
            await asyncio.sleep(0.03)
        assert (await client.answer()).status == 200


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_client_that_does_not_read_its_answer_is_cut_off(streamed: bool) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000

    async def handler(request: Request) -> Response | StreamResponse:
        return StreamResponse(200, chunks()) if streamed else Response(200, b"x" * 20_000_000)

    async with serving(handler, limits=FAST) as server, connected(server, limit=1000) as client:
        await client.send(GET)
        await until(lambda: len(server.connections) == 1)
        assert await until(lambda: not server.connections)


async def test_a_client_that_goes_on_sending_after_a_refusal_fills_no_memory() -> None:
    go_on = asyncio.Event()

    async def waiting(_request: Request) -> Response:
        await go_on.wait()
        return Response(200)

    async with serving(waiting) as server, connected(server) as client:
        await client.send(GET + b"nonsense\r\n\r\n")
        await client.send(bytes(16 * 1024 * 1024))
        (connection,) = server.connections
        assert isinstance(connection, Connection)
        assert not connection.backlog
        go_on.set()
        assert [(await client.answer()).status for _ in range(2)] == [200, 400]


@pytest.mark.parametrize("size", [60_000, 200_000])
async def test_a_client_that_pipelines_and_does_not_read_gets_no_further_answers_made(size: int) -> None:
    asked = 0

    def large(_request: Request) -> Response:
        nonlocal asked
        asked += 1
        return Response(200, bytes(size))

    wanted = 64_000_000 // size
    async with serving(large) as server, connected(server, limit=1024) as client:
        await client.send(GET * wanted)
        (connection,) = server.connections
        assert isinstance(connection, Connection)
        await until(lambda: connection.drained is not None)
        assert asked < wanted // 2
        for _ in range(wanted):
            assert len((await client.answer()).body) == size


async def test_slow_clients_do_not_slow_down_a_good_one() -> None:
    limits = Limits(header_seconds=30, tick=0.05)
    async with serving(limits=limits) as server:
        slow = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(200)]
        for _, writer in slow:
            writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")
        await until(lambda: len(server.connections) == 200)
        for _ in range(20):
            assert (await ask(server, GET)).status == 200
        assert len(server.connections) >= 200, "the good one was answered once the slow ones were gone"
        for _, writer in slow:
            writer.close()


async def test_the_handler_is_asked_only_after_the_guard() -> None:
    class Guard:
        def check(self, request: Request) -> Response | None:
            return Response(403, b"{}") if request.path == "/no" else None

    async with serving(echo, guard=Guard(), limits=FAST) as server:
        assert (await ask(server, GET)).status == 200
        denied = b"POST /no HTTP/1.1\r\n" + HOST + b"Content-Length: 1000000\r\n\r\n"
        assert (await ask(server, denied)).status == 403


async def test_a_flood_of_ignored_upgrades_is_read_like_any_other_pipeline() -> None:
    upgrade = b"GET / HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    async with serving() as server, connected(server) as client:
        await client.send(upgrade * 2000)
        for _ in range(2000):
            assert (await client.answer()).status == 200

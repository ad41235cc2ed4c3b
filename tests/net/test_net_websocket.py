"""WebSockets on the same listener, with a real client."""

import asyncio
import base64
import gc
import logging
import os
import sys
from typing import Any

import pytest
from tests.net.rawhttp import FAST, HOST, connected, serving
from tests.waiting import until
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, ConnectionClosedError, InvalidStatus

from agent_gate.errors import Unauthorized
from agent_gate.net.connection import Connection
from agent_gate.net.guard import HostGuard
from agent_gate.net.http import Request, Response
from agent_gate.net.server import Limits, Server
from agent_gate.net.websocket import WebSocket


class Echo:
    """Sends every message back and remembers what happened to its connection."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.ws: WebSocket | None = None

    def opened(self, ws: WebSocket) -> None:
        self.ws = ws
        self.events.append(("opened", ws.peer))

    def message(self, ws: WebSocket, data: str | bytes) -> None:
        assert isinstance(data, str)
        if data == "fail":
            raise RuntimeError("the handler broke")
        ws.send(data)

    def closed(self, ws: WebSocket, code: int, reason: str) -> None:
        self.events.append(("closed", code, reason))

    @property
    def close(self) -> tuple[int, str] | None:
        closes = [event[1:] for event in self.events if event[0] == "closed"]
        assert len(closes) <= 1
        return closes[0] if closes else None


def serve_echo(echo: Echo, **options: Any) -> Any:
    return serving(upgrade=lambda request: echo, **options)


def url(server: Server) -> str:
    return f"ws://127.0.0.1:{server.port}/ws"


def handshake(key: bytes | None = None) -> bytes:
    key = base64.b64encode(os.urandom(16)) if key is None else key
    return (
        b"GET /ws HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"
    )


def frame(payload: bytes, opcode: int = 1, *, fin: bool = True) -> bytes:
    """A client's frame, masked with zeros."""
    first = opcode | (0x80 if fin else 0)
    if len(payload) < 126:
        return bytes([first, 0x80 | len(payload)]) + bytes(4) + payload
    return bytes([first, 0x80 | 127]) + len(payload).to_bytes(8, "big") + bytes(4) + payload


async def test_text_of_every_kind_comes_back() -> None:
    echo = Echo()
    async with serve_echo(echo) as server, connect(url(server), compression=None) as client:
        for message in ("", "grüße", "x" * 500_000):
            await client.send(message)
            assert await client.recv() == message
        await client.send(["in ", "three ", "parts"])
        assert await client.recv() == "in three parts"
        assert await (await client.ping()) >= 0
    assert echo.events[0] == ("opened", "127.0.0.1")
    assert echo.close == (1000, "")


async def test_compression_is_not_negotiated() -> None:
    async with serve_echo(Echo()) as server, connect(url(server)) as client:
        assert client.protocol.extensions == []
        await client.send("plain")
        assert await client.recv() == "plain"


async def test_bytes_that_arrive_with_the_handshake_are_not_lost() -> None:
    async with serve_echo(Echo()) as server, connected(server) as client:
        whole = handshake() + frame(b"early")
        await client.send(whole)
        assert (await client.head())[0] == 101
        assert await client.reader.readexactly(7) == b"\x81\x05early"


async def test_the_server_closes_with_its_code_and_reason() -> None:
    echo = Echo()
    async with serve_echo(echo) as server, connect(url(server)) as client:
        assert echo.ws is not None
        echo.ws.close(1008, "authenticate first " + "é" * 100)
        with pytest.raises(ConnectionClosedError) as caught:
            await client.recv()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1008
        assert caught.value.rcvd.reason.startswith("authenticate first é")
        echo.ws.send("into the void")
        await until(lambda: echo.close is not None)
        assert echo.close is not None
        assert echo.close[0] == 1008


async def test_a_message_over_the_limit_closes_with_1009() -> None:
    echo = Echo()
    async with serve_echo(echo, limits=Limits(message_bytes=1000)) as server:
        async with connect(url(server)) as client:
            await client.send("x" * 1000)
            assert len(await client.recv()) == 1000
            await client.send(["x" * 600, "x" * 600])
            with pytest.raises(ConnectionClosedError) as caught:
                await client.recv()
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == 1009
        await until(lambda: echo.close is not None)
        assert echo.close is not None
        assert echo.close[0] == 1009


async def test_a_client_still_sending_can_read_why_it_was_closed() -> None:
    limits = Limits(message_bytes=1000, linger_seconds=1, tick=0.05)
    async with serve_echo(Echo(), limits=limits) as server, connected(server) as client:
        await client.send(handshake())
        await client.head()
        client.writer.write(frame(b"x" * 5_000_000))
        assert (await client.reader.readexactly(4))[2:] == (1009).to_bytes(2, "big")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(b"\xff\xfe"), 1007),
        (b"\x81\x05hello", 1002),
        (frame(b"x", opcode=0), 1002),
        (frame(b"x", opcode=5), 1002),
    ],
)
async def test_frames_that_break_the_protocol_close_with_their_code(data: bytes, code: int) -> None:
    echo = Echo()
    async with serve_echo(echo) as server, connected(server) as client:
        await client.send(handshake())
        await client.head()
        await client.send(data)
        rest = await client.reader.read()
        assert rest[0] == 0x88
        assert int.from_bytes(rest[2:4], "big") == code
        await until(lambda: echo.close is not None)
        assert echo.close is not None
        assert echo.close[0] == code


async def test_a_handlers_fault_closes_with_1011_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with serve_echo(Echo()) as server, connect(url(server)) as client:
        await client.send("fail")
        with pytest.raises(ConnectionClosedError) as caught:
            await client.recv()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1011
        assert "broke" not in caught.value.rcvd.reason
    assert "the handler broke" in caplog.text


async def test_a_reader_that_lets_messages_pile_up_is_closed_with_1013() -> None:
    echo = Echo()
    limits = Limits(buffer_bytes=1_000_000, linger_seconds=0.1, tick=0.02)
    async with serve_echo(echo, limits=limits) as server, connected(server, limit=1000) as client:
        await client.send(handshake())
        await client.head()
        assert echo.ws is not None
        sent = 0
        while echo.ws.open:
            echo.ws.send("x" * 100_000)
            sent += 100_000
            await asyncio.sleep(0)
        assert sent < 20_000_000
        assert echo.close == (1013, "reading too slowly")
        await until(lambda: not server.connections)


async def test_a_client_that_pings_and_reads_no_pong_is_closed_with_1013() -> None:
    echo = Echo()
    limits = Limits(buffer_bytes=1_000_000, linger_seconds=0.1, tick=0.02)
    async with serve_echo(echo, limits=limits) as server, connected(server, limit=1000) as client:
        await client.send(handshake())
        await client.head()
        assert echo.ws is not None
        sent, pings = 0, frame(b"p" * 125, 9) * 500
        while echo.ws.open and sent < 50_000_000:
            client.writer.write(pings)
            sent += len(pings)
            await asyncio.sleep(0)
        assert echo.close == (1013, "reading too slowly")
        await until(lambda: not server.connections)


@pytest.mark.parametrize("code", [1000, 1013])
async def test_a_client_that_was_told_to_go_is_let_go_when_it_answers_and_hears_no_pong_until_then(
    code: int,
) -> None:
    echo = Echo()
    limits = Limits(linger_seconds=600)
    async with serve_echo(echo, limits=limits) as server, connected(server) as client:
        await client.send(handshake())
        await client.head()
        assert echo.ws is not None
        echo.ws.close(code)
        answer = code.to_bytes(2, "big")
        await client.send(frame(b"ping", 9) * 100 + frame(answer, 8))
        assert await client.reader.read() == b"\x88\x02" + answer


async def test_a_client_that_pings_often_and_reads_its_pongs_stays() -> None:
    echo = Echo()
    limits = Limits(buffer_bytes=1000)
    async with serve_echo(echo, limits=limits) as server, connected(server) as client:
        await client.send(handshake())
        await client.head()
        for _ in range(100):
            await client.send(frame(b"p" * 100, 9))
            assert len(await client.reader.readexactly(102)) == 102
        await client.send(frame(b"hello"))
        assert await client.reader.readexactly(7) == b"\x81\x05hello"


async def test_a_message_in_endless_empty_parts_takes_no_memory() -> None:
    echo = Echo()
    async with serve_echo(echo) as server, connected(server) as client:
        await client.send(handshake())
        await client.head()
        await client.send(frame(b"a", fin=False) + frame(b"", 0, fin=False) * 100_000 + frame(b"", 9))
        assert await client.reader.readexactly(2) == b"\x8a\x00"
        assert echo.ws is not None
        assert sys.getsizeof(echo.ws.parts) < 1000
        await client.send(frame(b"b", 0))
        assert await client.reader.readexactly(4) == b"\x81\x02ab"


async def test_a_lost_client_is_told_once_as_1006_and_nothing_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    echo = Echo()
    with caplog.at_level(logging.INFO):
        async with serve_echo(echo) as server:
            async with connected(server) as client:
                await client.send(handshake())
                await client.head()
                client.writer.transport.abort()
            await until(lambda: echo.close is not None)
            assert not server.connections
    assert echo.close == (1006, "")
    assert [record for record in caplog.records if record.name.startswith("agent_gate")] == []


async def test_a_silent_client_is_pinged_and_a_dead_one_is_cut_off() -> None:
    dead, alive = Echo(), Echo()
    handlers = iter([dead, alive])
    async with (
        serving(upgrade=lambda request: next(handlers), limits=FAST) as server,
        connected(server) as raw,
    ):
        await raw.send(handshake())
        await raw.head()
        async with connect(url(server), ping_interval=None) as client:
            assert await raw.reader.readexactly(2) == b"\x89\x00"
            await until(lambda: dead.close is not None)
            assert alive.close is None
            await client.send("still here")
            assert await client.recv() == "still here"
    assert dead.close == (1011, "no answer to a ping")


async def test_reading_can_be_paused_and_resumed() -> None:
    echo = Echo()
    async with serve_echo(echo) as server, connect(url(server), ping_interval=None) as client:
        assert echo.ws is not None
        echo.ws.pause()
        await client.send("later")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.recv(), 0.05)
        echo.ws.resume()
        assert await client.recv() == "later"


async def test_draining_tells_the_client_that_the_gateway_goes_away() -> None:
    async with serve_echo(Echo()) as server, connect(url(server)) as client:
        draining = asyncio.create_task(server.drain(2))
        with pytest.raises(ConnectionClosed) as caught:
            await client.recv()
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1001
        await draining


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (handshake(b"short"), 400),
        (handshake().replace(b"Version: 13", b"Version: 8"), 400),
        (handshake().replace(b"GET", b"PUT"), 405),
        (handshake().replace(b"Upgrade: websocket", b"Upgrade: websocket, h2c"), 200),
    ],
)
async def test_a_bad_handshake_gets_an_http_answer(data: bytes, status: int) -> None:
    async with serve_echo(Echo()) as server, connected(server) as client:
        await client.send(data)
        assert (await client.answer()).status == status


async def test_an_upgrade_behind_a_request_in_flight_is_refused() -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        await gate.wait()
        return Response(200, b"{}")

    echo = Echo()
    async with serving(handler, upgrade=lambda request: echo) as server, connected(server) as client:
        await client.send(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n" + handshake())
        gate.set()
        assert [(await client.answer()).status for _ in range(2)] == [200, 400]


async def test_the_surface_and_the_guard_can_refuse_an_upgrade() -> None:
    def upgrade(request: Request) -> Response:
        if request.path == "/raise":
            raise Unauthorized("no token; send one")
        return Response(404, b"{}")

    async with serving(upgrade=upgrade) as server:
        server.guard = HostGuard([], server.port)
        base = f"ws://127.0.0.1:{server.port}"
        for path, headers, status in (
            ("/raise", {}, 401),
            ("/x", {}, 404),
            ("/x", {"Origin": "https://evil.example"}, 403),
        ):
            with pytest.raises(InvalidStatus) as caught:
                async with connect(base + path, additional_headers=headers):
                    pass
            assert caught.value.response.status_code == status


async def test_compression_is_never_agreed_on_and_a_compressed_frame_ends_the_connection() -> None:
    echo = Echo()
    async with serve_echo(echo) as server:
        async with connect(url(server), compression="deflate") as client:
            assert client.response is not None
            assert "Sec-WebSocket-Extensions" not in client.response.headers
        async with connected(server) as raw:
            await raw.send(handshake() + frame(b"x", opcode=0x41))
            await until(lambda: echo.events[-1][:2] == ("closed", 1002))


async def test_without_websocket_handler_an_upgrade_is_refused() -> None:
    async with serving() as server, connected(server) as client:
        await client.send(handshake())
        assert (await client.answer()).status == 426


async def test_what_read_the_handshake_is_gone_when_the_websocket_is_open() -> None:
    async with serve_echo(Echo()) as server:
        gc.collect()
        gc.disable()
        try:
            async with connect(url(server)) as client:
                await client.send("hello")
                await client.recv()
                assert not any(isinstance(one, Connection) for one in gc.get_objects())
        finally:
            gc.enable()

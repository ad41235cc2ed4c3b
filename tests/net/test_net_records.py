"""Large messages over TLS: they arrive whole, and what they needed is not kept for as long as the connection lasts."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

import psutil
import pytest
from tests.net.rawhttp import GET, Client, connected, serving
from tests.waiting import until
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from agent_gate.net.http import Request, Response, StreamResponse
from agent_gate.net.server import Limits
from agent_gate.net.tls.certificates import ensure_certificate
from agent_gate.net.tls.files import server_context
from agent_gate.net.websocket import WebSocket

LARGE = bytes(range(32, 127)) * 44_150  # more than 4 MiB, and no record like the next


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ssl.SSLContext]:
    files = ensure_certificate(Path(tmp_path_factory.mktemp("tls")))
    trusted = ssl.create_default_context(cafile=files.cert)
    return {"server": server_context(files.cert, files.key), "client": trusted}


async def chunks() -> AsyncIterator[bytes]:
    yield LARGE
    yield b"the end"


async def give(request: Request) -> Response | StreamResponse:
    return StreamResponse(200, chunks()) if request.path == "/stream" else Response(200, LARGE)


class Talker:
    """Answers any message with a large one and a small one."""

    def __init__(self, text: str = LARGE.decode()) -> None:
        self.text, self.code = text, 0

    def opened(self, ws: WebSocket) -> None:
        pass

    def message(self, ws: WebSocket, _data: str | bytes) -> None:
        ws.send(self.text)
        ws.send("after it")

    def closed(self, _ws: WebSocket, code: int, _reason: str) -> None:
        self.code = code


def speak(server: Any, contexts: dict[str, ssl.SSLContext]) -> Any:
    url = f"wss://127.0.0.1:{server.port}/"
    return connect(url, ssl=contexts["client"], max_size=None, ping_interval=None, compression=None)


async def test_answers_and_streams_arrive_whole_one_after_the_other(
    contexts: dict[str, ssl.SSLContext],
) -> None:
    async with (
        serving(give, ssl=contexts["server"]) as server,
        connected(server, ssl=contexts["client"]) as client,
    ):
        await client.send(GET + GET.replace(b"/ HTTP", b"/stream HTTP") + GET)
        assert (await client.answer()).body == LARGE
        assert (await client.answer()).body == LARGE + b"the end"
        assert (await client.answer()).body == LARGE


async def test_a_large_message_of_a_websocket_arrives_whole_and_small_ones_stay_behind_it(
    contexts: dict[str, ssl.SSLContext],
) -> None:
    limits = Limits(buffer_bytes=8 << 20)
    options: Any = {"upgrade": lambda _request: Talker(), "ssl": contexts["server"], "limits": limits}
    async with serving(give, **options) as server, speak(server, contexts) as ws:
        await ws.send("go")
        assert await ws.recv() == LARGE.decode()
        assert await ws.recv() == "after it"


async def test_what_waits_behind_a_slow_reader_counts_and_ends_the_connection_once_it_has_answered(
    contexts: dict[str, ssl.SSLContext],
) -> None:
    talker = Talker(LARGE.decode() * 5)  # more than the system takes by itself
    patient = Limits(linger_seconds=600)  # nobody is cut off here
    options: Any = {
        "upgrade": lambda _request: talker,
        "ssl": contexts["server"],
        "limits": patient,
    }
    async with serving(give, **options) as server, speak(server, contexts) as ws:
        await ws.send("go")
        assert len(await ws.recv()) == len(talker.text)
        with pytest.raises(ConnectionClosed):
            await ws.recv()
        assert talker.code == 1013


async def test_a_client_that_leaves_halfway_leaves_nothing(contexts: dict[str, ssl.SSLContext]) -> None:
    async with serving(give, ssl=contexts["server"]) as server:
        async with connected(server, ssl=contexts["client"]) as client:
            await client.send(GET)
            await client.reader.readexactly(100_000)
            client.writer.transport.abort()
        before = asyncio.current_task()
        await until(lambda: not (server.connections or len(asyncio.all_tasks()) > 1))
        assert asyncio.all_tasks() == {before}


async def test_a_connection_does_not_keep_what_a_large_answer_took(
    contexts: dict[str, ssl.SSLContext],
) -> None:
    async def fetch(client: Client) -> None:
        await client.send(GET)
        assert len((await client.answer()).body) == len(LARGE)

    async with serving(give, ssl=contexts["server"]) as server, AsyncExitStack() as life:
        clients = [
            await life.enter_async_context(connected(server, ssl=contexts["client"])) for _ in range(24)
        ]
        await fetch(clients[0])
        before = psutil.Process().memory_info().rss
        for client in clients[1:]:
            await fetch(client)
        grown = psutil.Process().memory_info().rss - before
        assert grown < 12 * len(LARGE), f"{grown / len(LARGE):.1f} answers are still in memory"


class Counted(bytes):
    """An answer's body that says how many of its kind there still are."""

    alive = 0

    def __new__(cls) -> Self:
        cls.alive += 1
        return super().__new__(cls, LARGE)

    def __del__(self) -> None:
        type(self).alive -= 1


async def give_anew(_request: Request) -> Response:
    return Response(200, Counted())


@pytest.mark.parametrize("secure", [True, False])
async def test_a_connection_that_waits_for_its_next_request_holds_no_answer(
    contexts: dict[str, ssl.SSLContext], secure: bool
) -> None:
    server_side, client_side = (contexts["server"], contexts["client"]) if secure else (None, None)
    async with (
        serving(give_anew, ssl=server_side) as server,
        connected(server, ssl=client_side) as client,
    ):
        for _ in range(2):
            await client.send(GET)
            assert (await client.answer()).body == LARGE
        await until(lambda: not Counted.alive)


async def test_how_long_a_handshake_took_does_not_count_for_the_request_after_it(
    contexts: dict[str, ssl.SSLContext],
) -> None:
    limits = Limits(tick=3600)
    async with (
        serving(give, ssl=contexts["server"], limits=limits) as server,
        connected(server) as client,
    ):
        server.now += 2 * limits.header_seconds
        await client.writer.start_tls(contexts["client"], server_hostname="127.0.0.1")
        await until(lambda: bool(server.connections))
        for one in server.connections:
            one.sweep(server.now)
        await client.send(GET)
        assert (await client.answer()).status == 200

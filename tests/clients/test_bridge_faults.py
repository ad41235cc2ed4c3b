"""The bridge between a host and a gateway, or a proxy before it, that answers what no gateway should."""

import asyncio
import contextlib
import json

import pytest
from tests.waiting import PATIENCE, until

from agent_gate.client.bridge import StdioBridge
from agent_gate.client.exchange import Address, Http
from agent_gate.net.http import Response, StreamResponse
from agent_gate.net.server import Server
from agent_gate.surfaces.mcp.sessions.streams import Stream

GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host"}}
BAD_GATEWAY = Response(502, b"<html>Bad Gateway</html>", content_type=b"text/html")
FORGOTTEN = Response(
    404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'
)


class Proxied:
    """A gateway that knows one session at a time; `faults` are what it says next to a method instead of its answer."""

    def __init__(self):
        self.server = Server(self.handle)
        self.faults = {}
        self.session = 0
        self.forgets = False
        self.stream, self.heard = None, 0

    def handle(self, request):
        if request.method == "GET" and request.path != "/ready" and self.stream is not None:
            self.heard += 1
            return StreamResponse(200, self.stream.read_chunks())
        if request.method != "POST":
            return Response(200 if request.path == "/ready" else 405)
        message = json.loads(request.body)
        if self.faults.get(message["method"]):
            return self.faults[message["method"]].pop(0)
        if message["method"] == "initialize":
            self.session += 1
            headers = ((b"mcp-session-id", b"%d" % self.session),)
            return Response(
                200, answer(message, {"protocolVersion": "2025-11-25", "capabilities": {}}), headers
            )
        if self.forgets or request.header(b"mcp-session-id") != b"%d" % self.session:
            return FORGOTTEN
        return Response(200, answer(message, {})) if "id" in message else Response(202)


def answer(message, result):
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


class Host:
    """What a host writes and reads."""

    def __init__(self):
        self.lines, self.written = asyncio.Queue(), asyncio.Queue()

    async def ask(self, ident, method, **params):
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        self.lines.put_nowait(json.dumps(message).encode())
        return await self.next()

    async def next(self):
        async with asyncio.timeout(PATIENCE):
            return json.loads(await self.written.get())


@contextlib.asynccontextmanager
async def bridged(patience=10.0):
    gateway, host = Proxied(), Host()
    await gateway.server.start("127.0.0.1", 0)
    http = Http(Address.parse(f"http://127.0.0.1:{gateway.server.port}"))
    running = asyncio.create_task(StdioBridge(http, None, host.written.put_nowait, patience).run(host.lines))
    try:
        assert "result" in await host.ask(0, "initialize", **GREETING)
        yield gateway, host
        host.lines.put_nowait(None)
        await running
    finally:
        running.cancel()
        await gateway.server.drain(0.1)


@pytest.mark.parametrize("fault", [BAD_GATEWAY, Response(200, b"[]"), Response(503, b'{"error":{}}')])
async def test_a_session_that_cannot_be_renewed_at_once_is_renewed_later(fault):
    async with bridged() as (gateway, host):
        gateway.session += 1
        gateway.faults["initialize"] = [fault]
        assert (await host.ask(1, "ping"))["result"] == {}
        assert gateway.session == 3
        gateway.session += 1
        assert (await host.ask(2, "ping"))["result"] == {}
        assert gateway.session == 5


async def test_a_gateway_that_forgets_every_session_is_given_up_after_a_while():
    async with bridged(patience=0.2) as (gateway, host):
        gateway.forgets = True
        refused = await host.ask(1, "ping")
        assert "forgets" in refused["error"]["message"]
        assert gateway.session < 20
        gateway.forgets = False
        assert (await host.ask(2, "ping"))["result"] == {}


async def test_a_line_that_is_nested_too_deep_is_refused_and_the_next_one_forwarded():
    async with bridged() as (_, host):
        host.lines.put_nowait(b"[" * 200_000)
        assert (await host.next())["error"]["code"] == -32700
        assert (await host.ask(1, "ping"))["result"] == {}


async def test_a_host_that_says_twice_that_it_is_ready_is_listened_for_once():
    async with bridged() as (gateway, host):
        gateway.stream = Stream("0")
        for number in 1, 2:
            host.lines.put_nowait(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
            await until(lambda number=number: gateway.heard >= number)
        listening = [task for task in asyncio.all_tasks() if task.get_coro().__name__ == "_listen"]
        assert len(listening) == 1
        gateway.stream.put(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
        assert (await host.next())["method"] == "notifications/tools/list_changed"
        gateway.stream.end()


DEEP = b"[" * 3000 + b"]" * 3000


def events(*messages):
    async def chunks():
        for message in messages:
            yield b"data: " + message + b"\n\n"

    return StreamResponse(200, chunks())


@pytest.mark.parametrize("shape", [b'{"id":1,"result":%b}', b'{"result":%b, "id": 1}'])
async def test_an_answer_that_is_nested_too_deep_to_be_read_reaches_the_host(shape):
    async with bridged() as (gateway, host):
        gateway.faults["tools/call"] = [events(b'"a result that is no message"', shape % DEEP)]
        host.lines.put_nowait(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}')
        async with asyncio.timeout(PATIENCE):
            assert await host.written.get() == b'"a result that is no message"'
            assert await host.written.get() == shape % DEEP
        assert (await host.ask(2, "ping"))["result"] == {}


async def test_a_list_that_is_nested_too_deep_to_be_read_reaches_the_host():
    async with bridged() as (gateway, host):
        listed = b'{"jsonrpc":"2.0","id":1,"result":{"x-mcp-header":%b}}' % DEEP
        gateway.faults["tools/list"] = [Response(200, listed)]
        host.lines.put_nowait(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
        async with asyncio.timeout(PATIENCE):
            assert await host.written.get() == listed

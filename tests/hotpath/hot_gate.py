"""A whole gateway before a small MCP server in the test's own process, and a client that writes raw bytes."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
from tests.waiting import PATIENCE, until

from agent_gate.app import Gateway
from agent_gate.config.options import Options
from agent_gate.net.http import Request, Response
from agent_gate.net.server import Server

TOKEN = "a-token-for-the-hot-path-0123456789"
HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
ERAS = (HANDSHAKE, MODERN)
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [{"name": name, "inputSchema": TEXT} for name in ("echo", "slow", "wipe")]
CAPABILITIES: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
encode, decode = msgspec.json.encode, msgspec.json.decode


class Upstream:
    """An MCP server: `echo` says its text back, `slow` does when `release` is set. It counts what reached it."""

    def __init__(self) -> None:
        self.server = Server(self.handle)
        self.calls: list[str] = []
        self.arrived = asyncio.Event()
        self.release = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/mcp"

    async def handle(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(405)
        message = decode(request.body)
        if "id" not in message:
            return Response(202)
        result = await self.result(message["method"], message.get("params") or {})
        return Response(200, encode({"jsonrpc": "2.0", "id": message["id"], "result": result}))

    async def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "tools/list":
            return {"tools": TOOLS}
        if method != "tools/call":
            about = {"name": "hot", "version": "1"}
            return {"protocolVersion": HANDSHAKE, "capabilities": {"tools": {}}, "serverInfo": about}
        self.calls.append(params["name"])
        self.arrived.set()
        if params["name"] == "slow":
            await self.release.wait()
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}], "isError": False}


@asynccontextmanager
async def running(
    folder: Path, permissions: str, *, aside: bool = False, **server: Any
) -> AsyncIterator[tuple[Gateway, Upstream, int]]:
    """A gateway whose server `up` is an `Upstream`, in a thread of its own where it runs `aside`; its public port."""
    upstream = Upstream()
    loop = in_a_thread() if aside else asyncio.get_running_loop()
    await elsewhere(loop, upstream.server.start("127.0.0.1", 0))
    config = {
        "agents": {"tester": {"token": TOKEN, "rate_limit": {"max_requests_per_minute": 0}}},
        "gateway": {"port": 0},
        "admin": {"socket": "./run/admin.sock", "port": 0},
        "servers": {"up": {"url": upstream.url, **server}},
        "permissions": "permissions.yaml",
        "limits": {"hold": 1},
    }
    (folder / "config.yaml").write_text(encode(config).decode())
    (folder / "permissions.yaml").write_text(permissions)
    gateway = None
    try:
        gateway = Gateway(Options(config=folder / "config.yaml", data=folder / "data", port=0, insecure=True))
        await gateway.start()
        await until(lambda: not gateway.supervisor.unready())
        yield gateway, upstream, gateway.listeners.public.port
    finally:
        upstream.release.set()
        if gateway is not None:
            await gateway.stop()
        await elsewhere(loop, upstream.server.drain(0))
        if aside:
            loop.call_soon_threadsafe(loop.stop)


def in_a_thread() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_forever()
        finally:
            loop.close()

    Thread(target=run, daemon=True).start()
    return loop


async def elsewhere(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> None:
    if loop is asyncio.get_running_loop():
        await work
    else:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def post(
    tool: str, arguments: dict[str, Any] | None, era: str = HANDSHAKE, number: Any = 1, **more: str
) -> bytes:
    """The bytes of one `tools/call`."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    headers = {"MCP-Protocol-Version": era}
    if era == MODERN:
        prefix = "io.modelcontextprotocol/"
        params["_meta"] = {f"{prefix}protocolVersion": MODERN, f"{prefix}clientCapabilities": CAPABILITIES}
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": tool}
    body = encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    return request(body, **{**headers, **more})


def request(body: bytes, path: str = "/mcp", **headers: str) -> bytes:
    whole = {
        "Host": "127.0.0.1",
        "Authorization": f"Bearer {TOKEN}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in whole.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


class Wire:
    """One connection to the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> tuple[int, Any]:
        """Status and decoded body of the next response; an empty body is None."""
        async with asyncio.timeout(PATIENCE):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            size = int(head.partition("content-length:")[2].partition("\r\n")[0] or 0)
            body = await self.reader.readexactly(size)
        return int(head.split()[1]), decode(body) if body else None

    async def ask(self, data: bytes) -> tuple[int, Any]:
        self.send(data)
        return await self.answer()

    def cut(self) -> None:
        """Leave without a goodbye."""
        self.writer.transport.abort()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    wire = Wire(reader, writer)
    try:
        yield wire
    finally:
        wire.cut()


def text_of(answer: Any) -> str:
    found: str = answer["result"]["content"][0]["text"]
    return found


def code_of(answer: Any) -> str:
    """What became of a call: `ok`, `waits`, the gateway's error code, or the protocol's."""
    if "error" in answer:
        return str(answer["error"]["code"])
    result = answer["result"]
    meta = result.get("_meta") or {}
    if result.get("resultType") == "input_required" or "agent-gate/pending" in meta:
        return "waits"
    error = meta.get("agent-gate/error")
    return str(error["code"]) if error else "ok"

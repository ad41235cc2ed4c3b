"""What the tests of the MCP source share: sources of it, callers for it, and servers to point it at."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection
from typing import Any

import msgspec
import pytest
from tests.processes import free_port
from tests.toolboxes import toolbox
from tests.waiting import wait_until

from agent_gate.config.servers.settings import ServerSettings
from agent_gate.core.approval import Approval
from agent_gate.core.call import Call, Caller, Case, Decision, Result
from agent_gate.core.catalog import Listing, build
from agent_gate.core.ports import Job
from agent_gate.core.tool import Definition
from agent_gate.mcp.revisions import BY_NAME
from agent_gate.net.pool import Pool
from agent_gate.sources.mcp import McpSource
from agent_gate.sources.mcp.calling.parking import Parked

HERE = Path(__file__).resolve().parent
ALL = {"sampling": {}, "elicitation": {}, "roots": {}}
ANSWERS = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "Paris"},
        "model": "m",
    },
    "roots/list": {"roots": []},
}


class Memory(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value


@dataclass
class Conversation:
    """A caller's client that notes what it is told and answers what it is asked."""

    era: str = "2025-11-25"
    capabilities: Mapping[str, Any] = field(default_factory=lambda: ALL)
    answers: Mapping[str, Any] = field(default_factory=lambda: ANSWERS)
    notes: list[tuple[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def protocol(self) -> str:
        return self.era

    @property
    def can_be_asked(self) -> bool:
        return "elicitation" in self.capabilities

    @property
    def comes_back(self) -> bool:
        return BY_NAME[self.era].asks_by_result

    async def ask(self, approval: Approval) -> None:
        raise AssertionError(f"the pipeline asks, not a source: {approval.id}")

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.notes.append((method, dict(params)))

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        self.asked.append((method, params))
        return self.answers[method]


def leave_when_parked(call: "asyncio.Task[Any]", monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancel `call` the moment the rest of it gets a task of its own."""
    start = Parked.start

    def start_and_leave(parked: Parked, work: Coroutine[Any, Any, bytes]) -> None:
        start(parked, work)
        call.cancel()

    monkeypatch.setattr(Parked, "start", start_and_leave)


def modern(capabilities: Mapping[str, Any] = ALL) -> Conversation:
    return Conversation(era="2026-07-28", capabilities=capabilities)


@dataclass
class Bench:
    """A source with what surrounds it in the gateway."""

    source: McpSource
    memory: Memory
    announced: list[Sequence[Definition]]

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> Result:
        seconds = options.pop("seconds", 20)
        caller = Caller(name=options.pop("caller", "agent"))
        definition = next(d for d in self.source.tools.definitions if d.name == name)
        entry = Listing(key=self.source.key, namespace=self.source.namespace, definitions=[definition])
        call = Call(tool=name, arguments=arguments or {}, caller=caller, **options)
        case = Case(
            call=call,
            tool=build([entry]).tools[0],
            signature="",
            decision=Decision(effect="allow"),
            arguments_hash="",
            definition_hash="",
        )
        return await self.source.answer(Job(case=case, deadline=time.monotonic() + seconds))

    async def text(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> str:
        result = await self.call(name, arguments, **options)
        return msgspec.json.decode(result.body)["content"][0]["text"]


@asynccontextmanager
async def bench(memory: Memory | None = None, **settings: Any) -> AsyncIterator[Bench]:
    """A source that is not connected yet."""
    pool = Pool()
    announced: list[Sequence[Definition]] = []
    kept = Memory() if memory is None else memory

    async def announce(key: str, definitions: Sequence[Definition]) -> None:
        announced.append(definitions)

    given = toolbox(pool, announce=announce, memory=kept, max_bytes=64 << 20)
    try:
        async with McpSource(ServerSettings(**{"key": "up", **settings}), given) as source:
            yield Bench(source, kept, announced)
    finally:
        await pool.aclose()


@asynccontextmanager
async def connected(memory: Memory | None = None, **settings: Any) -> AsyncIterator[Bench]:
    async with bench(memory, **settings) as made:
        await made.source.connect()
        yield made


def zoo(*modes: str) -> dict[str, Any]:
    """The settings of a badly behaved child."""
    return {"command": sys.executable, "args": ("-I", "-S", str(HERE / "zoo.py"), *modes)}


def program(argv: Sequence[str], *arguments: str) -> dict[str, Any]:
    return {"command": argv[0], "args": (*argv[1:], *arguments)}


@dataclass
class Upstream:
    url: str
    process: "subprocess.Popen[bytes]"


def wait_for_port(port: int, process: "subprocess.Popen[bytes]") -> None:
    def is_reached() -> bool:
        assert process.poll() is None, "the test server did not start"
        try:
            create_connection(("127.0.0.1", port)).close()
        except OSError:
            return False
        return True

    wait_until(is_reached, "the start of the test server")


@contextmanager
def listening(argv: Sequence[str], port: int, path: str = "/mcp", **env: str) -> Iterator[Upstream]:
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, env={**os.environ, **env}, stdout=quiet, stderr=quiet) as process:
        try:
            wait_for_port(port, process)
            yield Upstream(f"http://127.0.0.1:{port}{path}", process)
        finally:
            process.kill()


@contextmanager
def http_process(script: str, *arguments: str) -> Iterator[Upstream]:
    port = free_port()
    with listening([sys.executable, str(HERE / script), *arguments, str(port)], port) as upstream:
        yield upstream


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any
    writer: asyncio.StreamWriter

    @property
    def rpc(self) -> str:
        return self.body.get("method", "") if isinstance(self.body, dict) else ""

    async def send(
        self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str
    ) -> None:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{lines}\r\n"
        self.writer.write(head.encode() + body)
        await self.writer.drain()

    async def result(self, result: Any, **headers: str) -> None:
        reply = {"jsonrpc": "2.0", "id": self.body["id"], "result": result}
        await self.send(200, msgspec.json.encode(reply), **headers)

    async def events(self, *messages: Any, end: bool = True) -> None:
        """Answer with a stream of events."""
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        self.writer.write(head.encode())
        await self.more(*messages)
        if end:
            self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def more(self, *messages: Any) -> None:
        for message in messages:
            data = (
                message if isinstance(message, bytes) else b"data: " + msgspec.json.encode(message) + b"\n\n"
            )
            self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self.writer.drain()


Handler = Callable[[Request], Awaitable[None]]


class Scripted:
    """An HTTP server whose every answer the test writes; it keeps what it was sent."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.requests: list[Request] = []
        self.url = ""
        self.server: asyncio.Server | None = None

    def sent(self, rpc: str) -> list[Request]:
        return [request for request in self.requests if request.rpc == rpc]

    def stop(self) -> None:
        """Go away, in the middle of whatever was being said."""
        assert self.server is not None
        self.server.close()
        for request in self.requests:
            request.writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await read_request(reader, writer)
                self.requests.append(request)
                await self.handler(request)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    exact = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in head[1:] if line}
    size = int(headers.get("content-length", 0))
    body = msgspec.json.decode(await reader.readexactly(size)) if size else None
    return Request(method, path, exact, body, writer)


@asynccontextmanager
async def scripted(handler: Handler) -> AsyncIterator[Scripted]:
    upstream = Scripted(handler)
    upstream.server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0)
    try:
        upstream.url = f"http://127.0.0.1:{upstream.server.sockets[0].getsockname()[1]}/mcp"
        yield upstream
    finally:
        upstream.stop()


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


async def handshake(request: Request, *tools: Any, **capabilities: Any) -> bool:
    """Play the uninteresting part of a handshake server; False leaves the request to the test."""
    if request.method != "POST":
        await request.send(405)
    elif request.rpc == "server/discover":
        await request.send(400, b"{}")
    elif request.rpc == "initialize":
        offered = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, **capabilities}}
        await request.result({**offered, "serverInfo": {"name": "s", "version": "1"}}, mcp_session_id="one")
    elif request.rpc == "tools/list":
        await request.result({"tools": list(tools) or [tool("work")]})
    elif "id" not in request.body:
        await request.send(202)
    else:
        return False
    return True


async def discovery(request: Request, *tools: Any, **capabilities: Any) -> bool:
    """The same for a modern server."""
    if request.rpc == "server/discover":
        offered = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, **capabilities}}
        await request.result({**offered, "resultType": "complete"})
    elif request.rpc == "tools/list":
        await request.result({"tools": list(tools) or [tool("work")], "resultType": "complete"})
    else:
        return False
    return True

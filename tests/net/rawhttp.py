"""A client that writes exactly the bytes it is told to, and servers that misbehave on request."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from agent_gate.net.http import Handler, Request, Response, json_response
from agent_gate.net.server import Limits, Server

HOST = b"Host: 127.0.0.1\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
FAST = Limits(
    header_seconds=0.15,
    body_seconds=0.15,
    write_seconds=0.3,
    keep_alive_seconds=0.3,
    linger_seconds=0.2,
    ping_seconds=0.1,
    pong_seconds=0.1,
    tick=0.02,
)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


async def echo(request: Request) -> Response:
    """Says back what it got."""
    return json_response(
        200,
        {"method": request.method, "target": request.target.decode(), "body": request.body.decode("latin-1")},
    )


@asynccontextmanager
async def serving(
    handler: Handler = echo, *, path: Path | None = None, **options: Any
) -> AsyncIterator[Server]:
    """A server on a free port, or on the Unix socket `path`, that is gone afterwards whatever happens."""
    server = Server(handler, **options)
    await (server.start("127.0.0.1", 0) if path is None else server.start_unix(path))
    try:
        yield server
    finally:
        await server.drain(0)


class Client:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, *, bodiless: bool = False) -> Answer:
        status, headers = await self.head()
        if bodiless:
            return Answer(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            return Answer(status, headers, await self._chunks())
        if "content-length" in headers:
            return Answer(status, headers, await self.reader.readexactly(int(headers["content-length"])))
        return Answer(status, headers, await self.reader.read())

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:-2])
        return int(lines[0].split(" ")[1]), headers

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readline(), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        assert await self.reader.readexactly(2) == b"\r\n"
        return body

    async def ended(self) -> bool:
        """Whether the server closes without sending anything more."""
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass


@asynccontextmanager
async def connected(server: Server, **options: Any) -> AsyncIterator[Client]:
    client = Client(*await asyncio.open_connection("127.0.0.1", server.port, **options))
    try:
        yield client
    finally:
        await client.close()


async def ask(server: Server, data: bytes) -> Answer:
    """One connection, these bytes, the first answer."""
    async with connected(server) as client:
        await client.send(data)
        return await client.answer()


Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Upstream:
    """A scripted server that counts its connections and the requests it has read."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.connections = 0
        self.requests: list[bytes] = []

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.script(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def read_request(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        request = head + await reader.readexactly(length)
        self.requests.append(request)
        return request

    @asynccontextmanager
    async def listening(self, **options: Any) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, **options)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            await server.wait_closed()

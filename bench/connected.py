"""Agents that stay connected over TLS, in the three ways there are, and call now and then.

A `SocketAgent` holds a WebSocket. A `SessionAgent` has a session of MCP's handshake revisions and holds its event stream
open; it calls over a connection of its own, which it closes. A `PlainAgent` speaks MCP's modern revision over a connection
that it keeps while the gateway does. They are made cheaply, since what is measured is the gateway.
"""

import asyncio
import json
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, Protocol

from bench.agents import BareAgent, frame
from bench.load import CAPABILITIES, HANDSHAKE, HOLE, MODERN, Ask

LINE_LIMIT = 1 << 20
FIRST_ID = 10_000_000
GOODBYE = frame(8, (1000).to_bytes(2, "big"))


@dataclass(frozen=True, slots=True)
class Gate:
    """Where the gateway is."""

    port: int
    ssl: SSLContext

    @property
    def address(self) -> dict[str, Any]:
        return {"host": "127.0.0.1", "port": self.port, "ssl": self.ssl}


class ConnectedAgent(Protocol):
    async def connect(self) -> None: ...
    async def call(self, tool: str, arguments: dict[str, Any], number: int) -> bytes:
        """The answer to one call, as bytes."""
        ...

    @property
    def lost(self) -> bool:
        """Whether the connection that it should hold is gone."""
        ...

    async def leave(self) -> None: ...


@dataclass(slots=True)
class Wire:
    """One connection, with one request at a time on it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, gate: Gate) -> "Wire":
        return cls(*await asyncio.open_connection(**gate.address, limit=LINE_LIMIT))

    async def head(self, request: bytes) -> tuple[int, dict[str, str]]:
        self.writer.write(request)
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        fields = (line.partition(":") for line in lines)
        return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in fields}

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        status, fields = await self.head(request)
        if fields.get("transfer-encoding") == "chunked":
            return status, fields, await self._read_chunks()
        return status, fields, await self.reader.readexactly(int(fields.get("content-length", 0)))

    async def _read_chunks(self) -> bytes:
        found = []
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            found.append(await self.reader.readexactly(size))
            await self.reader.readexactly(2)
        await self.reader.readuntil(b"\r\n")
        return b"".join(found)

    def close(self) -> None:
        self.writer.close()


def request_of(ask: Ask, port: int, number: int) -> bytes:
    return ask.bytes(port).replace(HOLE.encode(), b"%8d" % (FIRST_ID + number))


def bare(method: str, ask: Ask, port: int) -> bytes:
    """A request without a body, with the headers of `ask`."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in ask.headers.items() if name != "Content-Type")
    return f"{method} {ask.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{lines}\r\n".encode()


def check(status: int, body: bytes, wanted: tuple[int, ...] = (200,)) -> bytes:
    if status not in wanted:
        raise ConnectionError(f"answered with {status} {body[:200]!r}")
    return body


@dataclass(slots=True)
class SocketAgent:
    gate: Gate
    token: str
    agent: BareAgent = field(init=False)

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        _, self.agent = await loop.create_connection(lambda: BareAgent(self.token), **self.gate.address)
        await self.agent.opened

    async def call(self, tool: str, arguments: dict[str, Any], number: int) -> bytes:
        params = {"tool": tool, "args": arguments}
        message = {"jsonrpc": "2.0", "id": number, "method": "tool_request", "params": params}
        return await self.agent.ask(json.dumps(message).encode())

    @property
    def lost(self) -> bool:
        return self.agent.lost.done()

    async def leave(self) -> None:
        self.agent.transport.write(GOODBYE)
        await self.agent.lost


@dataclass(slots=True)
class SessionAgent:
    gate: Gate
    token: str
    session: str = ""
    stream: Wire = field(init=False)

    async def connect(self) -> None:
        wire = self.stream = await Wire.open(self.gate)
        hello = {
            "protocolVersion": HANDSHAKE,
            "capabilities": CAPABILITIES,
            "clientInfo": {"name": "soak", "version": "1"},
        }
        status, fields, body = await wire.ask(self._post("initialize", hello, 0))
        check(status, body)
        self.session = fields["mcp-session-id"]
        check(*(await wire.ask(self._post("notifications/initialized", {}, None)))[::2], wanted=(202,))
        status, _ = await wire.head(bare("GET", self._ask(), self.gate.port))
        check(status, b"")

    def _ask(self, tool: str = "", arguments: Any = None) -> Ask:
        return Ask("/mcp", tool, HANDSHAKE, arguments, self.session, self.token)

    def _post(self, method: str, params: dict[str, Any], ident: int | None) -> bytes:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        body = json.dumps(message if ident is None else {**message, "id": ident})
        head = bare("POST", self._ask(), self.gate.port)[:-2].decode()
        if not self.session:
            head = head.replace(f"MCP-Protocol-Version: {HANDSHAKE}\r\n", "")
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    async def call(self, tool: str, arguments: dict[str, Any], number: int) -> bytes:
        wire = await Wire.open(self.gate)
        try:
            status, _, body = await wire.ask(request_of(self._ask(tool, arguments), self.gate.port, number))
            return check(status, body)
        finally:
            wire.close()

    @property
    def lost(self) -> bool:
        return self.stream.reader.at_eof()

    async def leave(self) -> None:
        wire = await Wire.open(self.gate)
        try:
            await wire.ask(bare("DELETE", self._ask(), self.gate.port))
        finally:
            wire.close()
            self.stream.close()


@dataclass(slots=True)
class PlainAgent:
    gate: Gate
    token: str
    wire: Wire | None = None

    async def connect(self) -> None:
        """Connect and list the tools, as clients do: a connection on which nothing is asked is soon closed."""
        self.wire = await Wire.open(self.gate)
        listing = Ask("/mcp", era=MODERN, token=self.token)
        check(*(await self.wire.ask(request_of(listing, self.gate.port, 0)))[::2])

    async def call(self, tool: str, arguments: dict[str, Any], number: int) -> bytes:
        if self.wire is None or self.wire.reader.at_eof():
            await self.connect()
        assert self.wire is not None
        ask = Ask("/mcp", tool, MODERN, arguments, token=self.token)
        status, _, body = await self.wire.ask(request_of(ask, self.gate.port, number))
        return check(status, body)

    @property
    def lost(self) -> bool:
        """A connection that nobody used for a while may be closed; the next call opens another."""
        return False

    async def leave(self) -> None:
        if self.wire is not None:
            self.wire.close()

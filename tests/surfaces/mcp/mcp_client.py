"""A client that writes MCP by hand, so that tests see exactly what is on the wire."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
from tests.surfaces.mcp.mcp_small import ANNA, SmallGate
from tests.waiting import PATIENCE

MODERN = "2026-07-28"
NEWEST = "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
encode, decode = msgspec.json.encode, msgspec.json.decode


class Reply:
    """An HTTP response: whole, or an event stream that is read event by event."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.last_id = ""

    @property
    def streams(self) -> bool:
        return self.headers.get("content-type") == "text/event-stream"

    @property
    def json(self) -> Any:
        return decode(self.body)

    @property
    def result(self) -> Any:
        assert "result" in self.json, self.body
        return self.json["result"]

    @property
    def error(self) -> Any:
        assert "error" in self.json, self.body
        return self.json["error"]

    async def read(self) -> None:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = dict(line.split(": ", 1) for line in lines[1:-2])
        if not self.streams:
            self.body = await self.reader.readexactly(int(self.headers.get("content-length", 0)))

    async def chunk(self) -> bytes:
        size = int(await self.reader.readline(), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def event(self) -> Any:
        """The next message of the stream; None at its end."""
        async with asyncio.timeout(PATIENCE):
            while chunk := await self.chunk():
                fields = dict(line.split(": ", 1) for line in chunk.decode().splitlines() if ": " in line)
                self.last_id = fields.get("id", self.last_id)
                if fields.get("data"):
                    return decode(fields["data"])
        return None

    async def events(self) -> list[Any]:
        found = []
        while (event := await self.event()) is not None:
            found.append(event)
        return found

    def hang_up(self) -> None:
        self.writer.close()


class Client:
    """Sends requests of one caller; every request has a connection of its own."""

    def __init__(self, gate: SmallGate, token: str = ANNA, path: str = "/mcp") -> None:
        self.gate, self.token, self.path = gate, token, path
        self.session: str | None = None
        self.era = NEWEST
        self.numbers = 0
        self.replies: list[Reply] = []

    async def send(self, method: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Reply:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.gate.server.port)
        reply = Reply(reader, writer)
        self.replies.append(reply)
        all_headers = {"Host": "127.0.0.1", "Authorization": f"Bearer {self.token}", **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items() if value is not None)
        head = f"{method} {self.path} HTTP/1.1\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode("latin-1") + body)
        async with asyncio.timeout(PATIENCE):
            await reply.read()
        return reply

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def session_headers(self) -> dict[str, str]:
        headers = {"MCP-Protocol-Version": self.era}
        return {**headers, "Mcp-Session-Id": self.session} if self.session else headers

    async def initialize(self, era: str = NEWEST, capabilities: Any = None) -> Any:
        params = {"protocolVersion": era, "capabilities": capabilities or {}, "clientInfo": {"name": "t"}}
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        reply = await self.send("POST", encode(message))
        assert reply.status == 200
        self.session, self.era = reply.headers["mcp-session-id"], reply.result["protocolVersion"]
        return reply.result

    async def ask(self, method: str, number: Any = None, **params: Any) -> Reply:
        number = self.number() if number is None else number
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return await self.send("POST", encode(message), self.session_headers())

    async def tell(self, message: Mapping[str, Any]) -> Reply:
        return await self.send("POST", encode({"jsonrpc": "2.0", **message}), self.session_headers())

    async def listen(self, last: str | None = None) -> Reply:
        headers = self.session_headers()
        return await self.send("GET", headers={**headers, "Last-Event-ID": last} if last else headers)

    async def call(self, name: str, _meta: Any = None, **arguments: Any) -> Reply:
        more = {"_meta": _meta} if _meta else {}
        return await self.ask("tools/call", name=name, arguments=arguments, **more)

    async def modern(
        self, method: str, headers: Mapping[str, str | None] | None = None, _meta: Any = None, **params: Any
    ) -> Reply:
        message = {
            "jsonrpc": "2.0",
            "id": self.number(),
            "method": method,
            "params": {**params, "_meta": {**META, **(_meta or {})}},
        }
        sent: dict[str, Any] = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if method in NAMED_BY:
            sent["Mcp-Name"] = params.get(NAMED_BY[method])
        return await self.send("POST", encode(message), {**sent, **(headers or {})})

    async def modern_call(self, name: str, arguments: Any = None, **more: Any) -> Reply:
        return await self.modern("tools/call", name=name, arguments=arguments or {}, **more)


@contextlib.asynccontextmanager
async def client_of(gate: SmallGate, **options: Any) -> AsyncIterator[Client]:
    client = Client(gate, **options)
    try:
        yield client
    finally:
        for reply in client.replies:
            reply.hang_up()
            with contextlib.suppress(OSError):
                await reply.writer.wait_closed()


def text_of(result: Any) -> str:
    return str(result["content"][0]["text"])

"""The limit in Python: an MCP proxy that only routes and renumbers. `python raw_proxy.py PORT UPSTREAM_PORT`.

No tokens, no rules, no record, no deadlines; bytes in, bytes out, as few steps as possible.
"""

import asyncio
import sys
from typing import Any

import httptools
import msgspec
import uvloop

HEAD = (
    b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\ncontent-length: "
)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"


class Params(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class Message(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"null")
    params: Params = msgspec.field(default_factory=Params)
    result: msgspec.Raw = msgspec.Raw(b"{}")


decode = msgspec.json.Decoder(Message).decode
encode = msgspec.json.encode


class Wire(asyncio.Protocol):
    """A kept connection to the upstream, one exchange at a time."""

    def __init__(self, idle: "list[Wire]") -> None:
        self.idle = idle
        self.parser = httptools.HttpResponseParser(self)
        self.body = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.body = b""

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.idle.append(self)
        self.future.set_result(self.body)

    def send(self, body: bytes, loop: asyncio.AbstractEventLoop) -> "asyncio.Future[bytes]":
        self.future = loop.create_future()
        self.transport.write(b"%b%d\r\n\r\n%b" % (HEAD, len(body), body))
        return self.future


class Client(asyncio.Protocol):
    def __init__(self, upstream: int, idle: list[Wire]) -> None:
        self.upstream, self.idle = upstream, idle
        self.loop = asyncio.get_running_loop()
        self.parser = httptools.HttpRequestParser(self)
        self.body = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.body = b""

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.task = self.loop.create_task(self.answer(decode(self.body)))

    async def answer(self, asked: Message) -> None:
        if self.idle:
            wire = self.idle.pop()
        else:
            _, wire = await self.loop.create_connection(lambda: Wire(self.idle), "127.0.0.1", self.upstream)
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%b,"arguments":%b}}'
        reply = await wire.send(body % (encode(asked.params.name), bytes(asked.params.arguments)), self.loop)
        text = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (bytes(asked.id), bytes(decode(reply).result))
        self.transport.write(ANSWER % (len(text), text))


async def main(port: int, upstream: int) -> None:
    idle: list[Wire] = []
    server = await asyncio.get_running_loop().create_server(
        lambda: Client(upstream, idle), "127.0.0.1", port, backlog=1024
    )
    await server.serve_forever()


uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))

"""A plugin for agent-gate that speaks MQTT 3.1.1 to a broker, with nothing but the standard library.

`mqtt_publish` publishes with QoS 1 and returns when the broker has acknowledged; `mqtt_read` returns the
retained message of a topic, or the next message that comes within its wait.
"""

import asyncio
import struct
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from agent_gate import ServiceConfig, ServiceHandler, ToolDefinition
from agent_gate.errors import UpstreamError

CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, SUBACK, DISCONNECT = 1, 2, 3, 4, 8, 9, 14
REFUSALS = {
    1: "its protocol version",
    2: "the client id",
    3: "it is unavailable",
    4: "user or password",
    5: "not authorized",
}


def text(value: str) -> bytes:
    """A string as MQTT writes it: two bytes of length, then UTF-8."""
    data = value.encode()
    return struct.pack("!H", len(data)) + data


def packet(kind: int, flags: int, body: bytes) -> bytes:
    """A whole packet; its length is written seven bits at a time."""
    length, size = len(body), b""
    while True:
        length, digit = divmod(length, 128)
        size += bytes([digit | (0x80 if length else 0)])
        if not length:
            return bytes([kind << 4 | flags]) + size + body


class Session:
    """One connection to the broker, for one call."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def receive(self, wanted: int) -> tuple[int, bytes]:
        """The flags and body of the next packet of that kind."""
        while True:
            head = (await self.reader.readexactly(1))[0]
            length = shift = 0
            while True:
                digit = (await self.reader.readexactly(1))[0]
                length |= (digit & 0x7F) << shift
                shift += 7
                if not digit & 0x80:
                    break
            body = await self.reader.readexactly(length)
            if head >> 4 == wanted:
                return head & 0x0F, body

    async def connect(self, username: str, password: str) -> None:
        flags = 0x02 | (0x80 if username else 0) | (0x40 if password else 0)
        body = text("MQTT") + bytes([4, flags]) + struct.pack("!H", 30) + text("")
        body += (text(username) if username else b"") + (text(password) if password else b"")
        self.writer.write(packet(CONNECT, 0, body))
        _, answer = await self.receive(CONNACK)
        if answer[1]:
            raise UpstreamError(
                f"The broker refused the connection: {REFUSALS.get(answer[1], 'no reason given')}"
            )

    async def publish(self, topic: str, payload: str, retain: bool) -> None:
        body = text(topic) + struct.pack("!H", 1) + payload.encode()
        self.writer.write(packet(PUBLISH, 0x02 | retain, body))
        await self.receive(PUBACK)

    async def first_message(self, topic: str) -> tuple[str, bool]:
        """The first message on a topic, and whether it was retained."""
        self.writer.write(packet(SUBSCRIBE, 0x02, struct.pack("!H", 1) + text(topic) + bytes([0])))
        _, answer = await self.receive(SUBACK)
        if answer[2] == 0x80:
            raise UpstreamError("The broker refused the subscription")
        flags, body = await self.receive(PUBLISH)
        start = 2 + struct.unpack("!H", body[:2])[0]
        return body[start:].decode("utf-8", "replace"), bool(flags & 1)


class MqttService(ServiceHandler):
    """`url: mqtt://host:port`; `auth: {type: basic, username, password}` where the broker wants one."""

    def __init__(self, config: ServiceConfig, tools: list[ToolDefinition]) -> None:
        super().__init__(config, tools)
        parts = urlsplit(config.url)
        self.host, self.port = parts.hostname or "localhost", parts.port or 1883

    async def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        async with self.session() as session:
            if tool_name == "mqtt_publish":
                await session.publish(args["topic"], args["payload"], args["retain"])
                return {"published": True, "topic": args["topic"]}
            try:
                async with asyncio.timeout(args["wait"]):
                    payload, retained = await session.first_message(args["topic"])
            except TimeoutError:
                return {"topic": args["topic"], "payload": None, "retained": False}
            return {"topic": args["topic"], "payload": payload, "retained": retained}

    async def health_check(self) -> bool:
        async with self.session():
            return True

    @asynccontextmanager
    async def session(self) -> Any:
        try:
            reader, writer = await asyncio.open_connection(self.host, self.port)
        except OSError as error:
            raise UpstreamError(
                f"The broker cannot be reached: {error.strerror or 'connection failed'}"
            ) from None
        session = Session(reader, writer)
        try:
            await session.connect(self.config.auth.username, self.config.auth.password)
            yield session
            writer.write(packet(DISCONNECT, 0, b""))
        except (OSError, EOFError):
            raise UpstreamError("The broker closed the connection") from None
        finally:
            writer.close()

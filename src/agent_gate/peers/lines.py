"""A WebSocket that somebody opened to us, as the line of a handshake."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from agent_gate.net.websocket import WebSocket, WebSocketHandler


@dataclass(eq=False)
class SocketLine(WebSocketHandler):
    """`begin` is called once it is open; `certificate_fingerprint` is of what proves that nobody stands between."""

    begin: Callable[["SocketLine"], object]
    certificate_fingerprint: str | None = None
    ws: WebSocket | None = None
    _heard: asyncio.Queue[str | bytes | None] = field(default_factory=lambda: asyncio.Queue(16))

    def opened(self, ws: WebSocket) -> None:
        self.ws = ws
        self.begin(self)

    def message(self, ws: WebSocket, data: str | bytes) -> None:
        if self._heard.full():
            ws.close(1008, "too many messages at once")
            return
        self._heard.put_nowait(data)

    def closed(self, _ws: WebSocket, _code: int, _reason: str) -> None:
        if not self._heard.full():
            self._heard.put_nowait(None)

    async def send(self, text: str) -> None:
        if self.ws is None or not self.ws.open:
            raise ConnectionResetError("the other side is gone")
        self.ws.send(text)

    async def receive(self) -> str | bytes:
        heard = await self._heard.get()
        if heard is None:
            raise EOFError("the other side is gone")
        return heard

    def close(self) -> None:
        if self.ws is not None:
            self.ws.close()

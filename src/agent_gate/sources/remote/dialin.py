"""Hosts that can only dial out: they connect over mTLS, stay, and are called through that WebSocket.

A request is a text frame `{"id", "method", "path", "body"}`, its answer `{"id", "status", "body"}`.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

from agent_gate.core.strict import MalformedJson, strict_json
from agent_gate.net.pool import Lost, NotSent, WholeReply
from agent_gate.net.websocket import WebSocket, WebSocketHandler
from agent_gate.peers.records import Peers
from agent_gate.sources.remote.ways import wait_for_ever


class HostFrame(msgspec.Struct, forbid_unknown_fields=True):
    """A host's answer to one request."""

    id: int
    status: int
    body: Any = None


class HostSocket(WebSocketHandler):
    """The open connection of one host. Another one of the same host takes its place."""

    def __init__(self, came: Callable[["HostSocket"], None], went: Callable[["HostSocket"], None]) -> None:
        self._came, self._went = came, went
        self._ws: WebSocket | None = None
        self._waiting: dict[int, asyncio.Future[WholeReply]] = {}
        self._numbers = count(1)
        self.over = asyncio.Event()

    def opened(self, ws: WebSocket) -> None:
        self._ws = ws
        self._came(self)

    def message(self, ws: WebSocket, data: str | bytes) -> None:
        try:
            frame = msgspec.convert(strict_json(data), HostFrame)
        except (MalformedJson, msgspec.ValidationError):
            ws.close(1008, "this is no answer of the protocol")
            return
        waiting = self._waiting.pop(frame.id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(WholeReply(frame.status, [], msgspec.json.encode(frame.body)))

    def closed(self, _ws: WebSocket, _code: int, _reason: str) -> None:
        self._ws = None
        self.over.set()
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(Lost("the host hung up"))
        self._went(self)

    def close(self) -> None:
        if self._ws is not None:
            self._ws.close(1008, "this component is not paired any more")

    async def request(self, method: str, path: str, body: bytes | None, deadline: float) -> WholeReply:
        if self._ws is None or not self._ws.open:
            raise NotSent("the host has hung up")
        number, loop = next(self._numbers), asyncio.get_running_loop()
        frame = {"id": number, "method": method, "path": path}
        if body is not None:
            frame["body"] = msgspec.Raw(body)
        answer: asyncio.Future[WholeReply] = loop.create_future()
        self._waiting[number] = answer
        self._ws.send(msgspec.json.encode(frame).decode())
        try:
            async with asyncio.timeout_at(deadline):
                return await answer
        except TimeoutError:
            raise Lost("the host did not answer in time", timed_out=True) from None
        finally:
            self._waiting.pop(number, None)


class DialledInWay:
    """Through the connection that the host made, for as long as it is there."""

    def __init__(self, peers: Peers, name: str, current: Callable[[str], HostSocket | None]) -> None:
        self._peers, self._name, self._current = peers, name, current

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        deadline: float,
        most: int,  # noqa: ARG002 the listener bounds what is read
        safe: bool,  # noqa: ARG002 there is one connection, so nothing is sent twice
    ) -> WholeReply:
        self._peers.usable(self._name)
        socket = self._current(self._name)
        if socket is None:
            raise NotSent("the host is not connected; it dials in by itself")
        return await socket.request(method, path, body, deadline)

    async def wait_until_lost(self) -> None:
        socket = self._current(self._name)
        if socket is None:
            await wait_for_ever()
        else:
            await socket.over.wait()

    def seen(self) -> None:
        self._peers.note_seen_lately(self._name)

    async def aclose(self) -> None:
        return None

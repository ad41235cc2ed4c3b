"""Bytes from a server to one HTTP reply: the same however they are cut and whether its head is known, or an error."""

import asyncio
import math
from types import SimpleNamespace
from typing import Any

from tests.fuzz.fuzzing import Target

from agent_gate.errors import GatewayError
from agent_gate.net.exchange import StreamReply, WholeReply, Wire
from agent_gate.net.pool import Sending
from agent_gate.net.pool import Target as Upstream

LOOP = asyncio.new_event_loop()
UPSTREAM = Upstream.parse("http://127.0.0.1:9")
MOST = 4096


class Transport:
    """What a connection is written to; it only knows whether it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, data: bytes) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True

    pause_reading = resume_reading = lambda self: None


def pool_of(replies: dict[bytes, Any]) -> Any:
    """As much of a pool as one connection needs; `replies` are the heads that were parsed before."""
    return SimpleNamespace(
        loop=LOOP,
        sweep_at=math.inf,
        outbox=set(),
        replies=replies,
        parsed=0,
        repeated=0,
        sweep_by=lambda _when: None,
        release=lambda _wire: None,
        forget=lambda _wire: None,
    )


def answered(chunks: list[bytes], replies: dict[bytes, Any], *, streaming: bool = False) -> object:
    """What a request got: its reply, or the kind of its error."""
    wire, transport = Wire(pool_of(replies), UPSTREAM), Transport()
    wire.connection_made(transport)  # type: ignore[arg-type]
    waiter = wire.send(
        Sending(b"GET / HTTP/1.1\r\n\r\n", UPSTREAM, math.inf, MOST, True, MOST, streaming=streaming)
    )
    wire.flush()
    for chunk in chunks:
        if not transport.closed:
            wire.data_received(chunk)
    wire.connection_lost(None)
    assert waiter.done(), "whoever waits is told, at the latest when the connection ends"
    error = waiter.exception()
    if error is not None:
        assert isinstance(error, GatewayError)
        return type(error)
    return of_reply(waiter.result())


def of_reply(reply: WholeReply | StreamReply) -> object:
    if isinstance(reply, WholeReply):
        assert len(reply.body) <= MOST
        return reply.status, reply.headers, reply.body
    return reply.status, reply.headers


def run(data: bytes) -> None:
    if not data:
        return
    known: dict[bytes, Any] = {}
    first = answered([data], known)
    assert answered([data], known) == first, "a head that is known reads the same"
    small = [data[at : at + 7] for at in range(0, len(data), 7)]
    assert answered(small, {}) == first, "however it is cut"
    answered(small, {}, streaming=True)


TARGET = Target(
    "http_replies",
    run,
    words=(
        b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 204 No Content\r\n", b"HTTP/1.1 307 x\r\n",
        b"Content-Length: 2\r\n", b"Content-Length: 5000\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"Content-Type: text/event-stream\r\n",
        b"Content-Encoding: gzip\r\n", b"Location: /x\r\n", b"\r\n", b"\r\n\r\n", b"{}", b"2\r\n{}\r\n", b"0\r\n\r\n", b"ffffffff\r\n", b";ext", b"\n", b"\r",
        b"\x00", b" ", b"\t", b":", b"-1", b"+2",
    ),
)  # fmt: skip

"""One upstream connection and the exchange on it: request bytes out, one reply or one stream back.

A connection carries one exchange at a time. Whatever goes wrong after the first byte was written ends
in `Lost`, because the other side may have acted; the connection is then never used again.
"""

import asyncio
import math
from collections import deque
from typing import TYPE_CHECKING, Self, cast

import httptools
import msgspec

from agent_gate.errors import DependencyUnavailable, OutcomeUnknown, UpstreamError
from agent_gate.net.http import Header
from agent_gate.net.known import END, LONGEST, MOST

if TYPE_CHECKING:
    from agent_gate.net.pool import Pool, Sending, Target

HEAD_BYTES = 64 * 1024
MOST_DIGITS = 5
STREAM_BUFFER = 256 * 1024
EVENTS = b"event-stream"


class NotSent(DependencyUnavailable):
    """The request provably never left: no connection, no TLS, or no time."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class Lost(OutcomeUnknown):
    """The request was sent, but no whole reply came back: it may have been acted on, or not."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class BadReply(UpstreamError):
    """A reply came, but in a form that was not asked for."""


class TooLarge(BadReply):
    """The reply is larger than the caller allows."""


class WholeReply(msgspec.Struct, eq=False, gc=False):
    """A whole reply. Header names are lower case; nothing in the body was decoded."""

    status: int
    headers: list[Header]
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """The first header of that lower-case name."""
        return find_header(self.headers, name)


def find_header(headers: list[Header], name: bytes) -> bytes | None:
    for key, value in headers:
        if key == name:
            return value.rstrip(b" \t")
    return None


def retry_after(reply: "WholeReply | StreamReply", otherwise: float) -> float:
    """The seconds that the other side asks to wait; `otherwise` where it says none, or more than anybody would."""
    wait = reply.header(b"retry-after") or b""
    return float(wait) if wait.isdigit() and len(wait) <= MOST_DIGITS else otherwise


class StreamReply:
    """A reply whose body is read as it comes: `async for chunk in reply`, then `aclose`.

    `deadline` covers the whole exchange; set it (to `math.inf` for an endless stream) to move it.
    """

    __slots__ = ("_buffer", "_buffered", "_error", "_over", "_waiter", "_wire", "headers", "status")

    def __init__(self, wire: "Wire", status: int, headers: list[Header]) -> None:
        self.status = status
        self.headers = headers
        self._wire: Wire | None = wire
        self._buffer: deque[bytes] = deque()
        self._buffered = 0
        self._over = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def deadline(self) -> float:
        return math.inf if self._wire is None else self._wire.deadline

    @deadline.setter
    def deadline(self, when: float) -> None:
        if self._wire is not None:
            self._wire.set_deadline(when)

    def header(self, name: bytes) -> bytes | None:
        """The first header of that lower-case name."""
        return find_header(self.headers, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._buffer:
            if self._error is not None:
                raise self._error
            if self._over:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        chunk = self._buffer.popleft()
        self._buffered -= len(chunk)
        if self._wire is not None and self._buffered < STREAM_BUFFER:
            self._wire.resume()
        return chunk

    async def read(self, max_bytes: int) -> bytes:
        """The rest of the body as one piece, at most `max_bytes` of it."""
        if self._over and self._error is None and self._buffered <= max_bytes:
            return self._rest()
        chunks: list[bytes] = []
        size = 0
        async for chunk in self:
            size += len(chunk)
            if size > max_bytes:
                await self.aclose()
                raise TooLarge(f"the reply is larger than {max_bytes} bytes")
            chunks.append(chunk)
        return b"".join(chunks)

    def _rest(self) -> bytes:
        """What is left of a body that has arrived whole."""
        buffer, self._buffer, self._buffered = self._buffer, deque(), 0
        return buffer[0] if len(buffer) == 1 else b"".join(buffer)

    async def aclose(self) -> None:
        """Stop reading; a connection whose reply was not read to its end is closed."""
        wire, self._wire = self._wire, None
        self._over = True
        self._buffer.clear()
        if wire is not None:
            wire.abort()
        self._wake()

    def push(self, chunk: bytes) -> bool:
        """Take a chunk from the connection; True asks it to wait for the reader."""
        self._buffer.append(chunk)
        self._buffered += len(chunk)
        self._wake()
        return self._buffered >= STREAM_BUFFER

    def finish(self, error: Exception | None) -> None:
        self._wire = None
        self._over = True
        self._error = error
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class KnownReply(msgspec.Struct):
    """What replies with the same head have in common."""

    head: bytes
    status: int
    headers: list[Header]
    length: int
    size: int


class Wire(asyncio.Protocol):
    """The client's end of one connection."""

    __slots__ = (
        "chunks",
        "deadline",
        "fresh",
        "head_done",
        "headers",
        "idle_since",
        "known",
        "loop",
        "outgoing",
        "parser",
        "paused",
        "pool",
        "received",
        "sending",
        "size",
        "status",
        "stream",
        "target",
        "transport",
        "until_close",
        "waiter",
    )

    def __init__(self, pool: "Pool", target: "Target") -> None:
        self.pool = pool
        self.loop = pool.loop
        self.target = target
        self.transport: asyncio.Transport | None = None
        self.parser = httptools.HttpResponseParser(self)
        self.sending: Sending
        self.waiter: asyncio.Future[WholeReply | StreamReply] | None = None
        self.stream: StreamReply | None = None
        self.known: KnownReply | None = None
        self.headers: list[Header] = []
        self.chunks: list[bytes] = []
        self.fresh = self.outgoing = b""
        self.idle_since = 0.0
        self.deadline = math.inf
        self.received = self.size = self.status = 0
        self.head_done = self.until_close = self.paused = False

    # -- the pool's side

    @property
    def usable(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    @property
    def busy(self) -> bool:
        return self.waiter is not None or self.stream is not None

    def send(self, sending: "Sending") -> "asyncio.Future[WholeReply | StreamReply]":
        """Have one request written with all others of this turn; the future gives its reply."""
        pool = self.pool
        self.waiter = waiter = self.loop.create_future()
        self.sending = sending
        self.received = 0
        self.deadline = deadline = sending.deadline
        if deadline < pool.sweep_at:
            pool.sweep_by(deadline)
        self.outgoing = sending.data
        pool.outbox.add(self)
        return waiter

    def flush(self) -> None:
        data, self.outgoing = self.outgoing, b""
        if data and self.transport is not None:
            if self.transport.is_closing():
                self.outgoing = data
            else:
                self.transport.write(data)

    def set_deadline(self, when: float) -> None:
        self.deadline = when
        self.pool.sweep_by(when)

    def expire(self) -> None:
        self.fail(Lost(f"no reply from {self.target.origin} before the deadline", timed_out=True))

    def abort(self) -> None:
        """Drop the connection without a word to whoever waited."""
        self.waiter = self.stream = None
        self.outgoing = b""
        if self.transport is not None:
            self.transport.abort()

    def give_up(self, waiter: "asyncio.Future[WholeReply | StreamReply]") -> None:
        """Nobody waits for `waiter` any more; the connection is dropped unless it went on to another exchange."""
        arrived = waiter.done() and not waiter.cancelled() and waiter.exception() is None
        if self.waiter is waiter or (arrived and self.stream is not None and self.stream is waiter.result()):
            self.abort()

    def fail(self, error: Exception) -> None:
        """End the exchange with an error and the connection with it."""
        waiter, stream = self.waiter, self.stream
        self.abort()
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)
        if stream is not None:
            stream.finish(error)

    def resume(self) -> None:
        if self.paused and self.usable:
            self.paused = False
            assert self.transport is not None
            self.transport.resume_reading()

    # -- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.outgoing or (self.waiter is None and self.stream is None):
            self._unasked()
            return
        if not self.received:
            if self._take_known(data):
                return
            self.fresh = data
            self.head_done = self.until_close = False
            self.size = 0
        self.received += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            if self.busy:
                self.fail(Lost(f"{self.target.origin} answered with broken HTTP: {error}"))
            self.abort()
        if not self.head_done and self.received > HEAD_BYTES and self.busy:
            self.fail(TooLarge(f"the reply's head from {self.target.origin} is over {HEAD_BYTES} bytes"))

    def _unasked(self) -> None:
        """Bytes came before a request was written: they answer nothing, and what follows cannot be trusted."""
        if self.outgoing:
            self.fail(NotSent(f"{self.target.origin} spoke before it was asked"))
        self.abort()

    def _take_known(self, data: bytes) -> bool:
        """Take a whole short reply whose head was parsed before, byte for byte."""
        known = self.known
        if known is None or not data.startswith(known.head):
            known = self.known = self.pool.replies.get(data[: data.find(END) + 4])
        if known is None or len(data) != known.size or known.length > self.sending.whole:
            return False
        self.pool.repeated += 1
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(WholeReply(known.status, known.headers, data[len(known.head) :]))
        self.pool.release(self)
        return True

    def _learn(self, body: bytes) -> None:
        """Remember the head of a reply that came in one piece and left the connection open."""
        data, self.fresh = self.fresh, b""
        at, replies = data.find(END), self.pool.replies
        fields = dict(self.headers)
        if len(data) != self.received or at + 4 + len(body) != len(data):
            return
        if at > LONGEST or b"content-length" not in fields:
            return
        if EVENTS not in fields.get(b"content-type", b"") and self.status >= 200:
            if len(replies) >= MOST:
                replies.clear()
            head = data[: at + 4]
            replies[head] = KnownReply(head, self.status, self.headers, len(body), len(data))

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        del self.parser  # which holds this wire
        self.pool.forget(self)
        if self.outgoing:
            self.fail(NotSent(f"{self.target.origin} closed the connection before the request was written"))
        if not self.busy:
            return
        if self.head_done and self.until_close and error is None:
            self._finish(reusable=False)
        else:
            self.fail(Lost(f"{self.target.origin} closed the connection before its reply was complete"))

    # -- the parser's side

    def on_message_begin(self) -> None:
        if not self.busy:
            self.abort()
        self.headers = []
        self.chunks = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.head_done:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status = self.status = self.parser.get_status_code()
        self.pool.parsed += 1
        if not self.busy or status < 200:
            if status == 101:
                self.fail(BadReply(f"{self.target.origin} switched protocols without being asked"))
            return
        self.head_done = True
        sending, fields = self.sending, dict(self.headers)
        if b"content-encoding" in fields and fields[b"content-encoding"].strip().lower() != b"identity":
            self.fail(BadReply(f"{self.target.origin} sent an encoded body; it was asked for none"))
            return
        length = fields.get(b"content-length")
        whole = False
        if length is None:
            self.until_close = b"transfer-encoding" not in fields and status not in (204, 304)
        elif int(length) > sending.max_bytes and not sending.head_only:
            self._too_large()
            return
        else:
            whole = int(length) <= sending.whole and EVENTS not in fields.get(b"content-type", b"")
        if sending.streaming and not whole:
            self._start_stream()
        if sending.head_only:
            self._finish(reusable=False)

    def on_body(self, chunk: bytes) -> None:
        if self.waiter is None and self.stream is None:
            return
        self.size += len(chunk)
        if self.size > self.sending.max_bytes:
            self._too_large()
        elif self.stream is None:
            self.chunks.append(chunk)
        elif self.stream.push(chunk) and self.usable and not self.paused:
            assert self.transport is not None
            self.paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self.busy and self.status >= 200:
            self._finish(reusable=self.parser.should_keep_alive())

    # -- inside

    def _too_large(self) -> None:
        most = self.sending.max_bytes
        self.fail(TooLarge(f"the reply from {self.target.origin} is larger than {most} bytes"))

    def _start_stream(self) -> None:
        waiter, self.waiter = self.waiter, None
        self.stream = StreamReply(self, self.status, self.headers)
        if waiter is not None and not waiter.done():
            waiter.set_result(self.stream)

    def _finish(self, *, reusable: bool) -> None:
        waiter, stream = self.waiter, self.stream
        self.waiter = self.stream = None
        chunks = self.chunks
        if waiter is not None and not waiter.done():
            body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
            if self.fresh and reusable:
                self._learn(body)
            waiter.set_result(WholeReply(self.status, self.headers, body))
        if stream is not None:
            stream.finish(None)
        if self.paused:
            self.resume()
        self.chunks = []
        if reusable and self.usable:
            self.pool.release(self)
        elif self.transport is not None:
            self.transport.abort()

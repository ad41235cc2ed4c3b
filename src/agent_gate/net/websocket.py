"""WebSocket connections as callbacks: an idle one holds no task, no HTTP parser and no buffer.

Frames are read and written by the `websockets` package without its I/O. A handler object gets
`opened`, `message` and `closed`; pings and deadlines come from the server's sweeper.
"""

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Protocol, cast

from websockets.datastructures import Headers
from websockets.frames import BINARY, CONT, PING, TEXT, Close, Frame
from websockets.http11 import Request as Handshake
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from agent_gate.errors import GatewayError
from agent_gate.net.http import Request, Response, error_response, refusal
from agent_gate.net.tls.records import RECORD, in_records

if TYPE_CHECKING:
    from agent_gate.net.server import Server

GOING_AWAY = 1001
ABNORMAL = 1006
INVALID_DATA = 1007
INTERNAL_ERROR = 1011
TRY_AGAIN_LATER = 1013
LONGEST_REASON = 250

log = logging.getLogger("agent_gate.net")
frames_log = logging.getLogger("agent_gate.net.frames")
frames_log.setLevel(logging.WARNING)


class WebSocketHandler(Protocol):
    """What a surface gives for one connection."""

    def opened(self, ws: "WebSocket") -> None: ...

    def message(self, ws: "WebSocket", data: str | bytes) -> None: ...

    def closed(self, ws: "WebSocket", code: int, reason: str) -> None: ...


class WebSocket(asyncio.Protocol):
    """One open WebSocket. `closed` is called exactly once, with the code of whoever closed first."""

    __slots__ = (
        "code",
        "ended",
        "frames",
        "handler",
        "parts",
        "peer",
        "pinged",
        "reason",
        "server",
        "since",
        "text",
        "transport",
        "unread_pongs",
        "unsent",
    )

    def __init__(
        self,
        server: "Server",
        transport: asyncio.Transport,
        frames: ServerProtocol,
        handler: WebSocketHandler,
        peer: str,
    ) -> None:
        self.server = server
        self.transport: asyncio.Transport | None = transport
        self.frames = frames
        self.handler = handler
        self.peer = peer
        self.parts: bytearray | None = None
        self.unread_pongs = 0
        self.unsent: deque[memoryview | bytes] | None = None
        """What waits behind a large message over TLS; an empty item ends our side."""
        self.text = True
        self.since = server.now
        self.pinged = False
        self.ended = False
        self.code = ABNORMAL
        self.reason = ""

    # -- the surface's side

    @property
    def open(self) -> bool:
        return not self.ended and self.frames.state is OPEN

    def send(self, data: str) -> None:
        """Queue one message. A reader that has let more than `buffer_bytes` pile up by then is closed with 1013.

        One message may be larger than that; what counts is how much waits when the next one comes.
        """
        transport = self.transport
        if transport is None or not self.open:
            return
        if self._waiting(transport) > self.server.limits.buffer_bytes:
            self.close(TRY_AGAIN_LATER, "reading too slowly")
            return
        self.frames.send_text(data.encode("utf-8"))
        self._flush()

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Start closing: no further message is delivered. The reason is cut to what a close frame can carry."""
        if self.ended or self.code != ABNORMAL:
            return
        reason = reason.encode("utf-8")[:120].decode("utf-8", "ignore")
        self.code, self.reason = code, reason
        if not self.open:
            return
        self.frames.send_close(code, reason)
        self.since = self.server.now
        self._flush()
        if code == TRY_AGAIN_LATER:
            self._end(code, reason)

    def pause(self) -> None:
        """Read no more messages until `resume`."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    # -- the transport's side

    def data_received(self, data: bytes) -> None:
        if self.frames.eof_sent:
            return
        self.pinged = False
        frames = self.frames
        if open_before := frames.state is OPEN:
            self.since = self.server.now
        frames.receive_data(data)
        for event in frames.events_received():
            # What came whole before a broken frame was sent; only our own close ends the listening.
            if open_before and self.code == ABNORMAL:
                self._take_frame(cast(Frame, event))
        self._flush(pongs=open_before)
        self._note_close()
        if frames.eof_sent:
            self._end(self.code, self.reason)

    def connection_lost(self, _error: Exception | None) -> None:
        self.transport = self.unsent = None
        self.server.connections.discard(self)
        self._end(self.code, self.reason)

    # -- inside

    def _take_frame(self, frame: Frame) -> None:
        opcode = frame.opcode
        if opcode is TEXT or opcode is BINARY:
            self.text = opcode is TEXT
            if frame.fin:
                self._deliver(bytes(frame.data))
            else:
                self.parts = bytearray(frame.data)
        elif opcode is CONT and self.parts is not None:
            self.parts += frame.data
            if frame.fin:
                data, self.parts = bytes(self.parts), None
                self._deliver(data)
        elif opcode is PING:
            self._count_pong(len(frame.data) + 2)

    def _count_pong(self, size: int) -> None:
        """Pongs go out by themselves: whoever pings on and on and reads none of them is reading too slowly."""
        if self.transport is None or not self._waiting(self.transport):
            self.unread_pongs = 0
        self.unread_pongs += size
        if self.unread_pongs > self.server.limits.buffer_bytes:
            self.close(TRY_AGAIN_LATER, "reading too slowly")

    def _deliver(self, data: bytes) -> None:
        try:
            message: str | bytes = data.decode("utf-8") if self.text else data
        except UnicodeDecodeError:
            self.code, self.reason = INVALID_DATA, "a text message must be UTF-8"
            self.frames.fail(self.code, self.reason)
            return
        self._call("message", message)

    def _call(self, name: str, *args: object) -> None:
        try:
            getattr(self.handler, name)(self, *args)
        except Exception:  # the boundary: a handler's fault is logged and closes the socket
            log.exception("the WebSocket handler failed in %s", name)
            self.close(INTERNAL_ERROR, "the gateway failed; its log has the details")

    def _flush(self, *, pongs: bool = True) -> None:
        """Write what the frame layer has ready; its empty write means that we end our side.

        Half-closing lets a client that is still sending read why; the sweeper ends the other half. Behind our own
        close only pongs could come beside it, for whoever pings on and on and may read none of them.
        """
        transport = self.transport
        pending = [data for data in self.frames.data_to_send() if pongs or not data]
        if transport is None or transport.is_closing():
            return
        for data in pending:
            if self.unsent is not None:
                self.unsent.extend(in_records(data) if data else (data,))
            elif len(data) > RECORD and self.server.secure:
                self.unsent = deque(in_records(data))
                self.resume_writing()
            else:
                self._write(transport, data)

    def _write(self, transport: asyncio.Transport, data: memoryview | bytes) -> None:
        if data:
            transport.write(data)
            return
        self.since = self.server.now
        if transport.can_write_eof():
            transport.write_eof()
        else:
            transport.close()

    def resume_writing(self) -> None:
        """Write what waited, as far as the socket takes it."""
        transport = self.transport
        while self.unsent and transport is not None and not transport.get_write_buffer_size():
            self._write(transport, self.unsent.popleft())
        if not self.unsent:
            self.unsent = None

    def _waiting(self, transport: asyncio.Transport) -> int:
        """Bytes that the client has not taken yet, as far as we hold them."""
        waiting = sum(map(len, self.unsent)) if self.unsent is not None else 0
        return transport.get_write_buffer_size() + waiting

    def _note_close(self) -> None:
        """Remember who closed and why; the first close frame counts."""
        if self.frames.state is OPEN or self.code != ABNORMAL:
            return
        received, sent = self.frames.close_rcvd, self.frames.close_sent
        first = received if self.frames.close_rcvd_then_sent else sent
        close = first or received or Close(ABNORMAL, "")
        self.code, self.reason = int(close.code), close.reason

    def _end(self, code: int, reason: str) -> None:
        if self.ended:
            return
        self.ended = True
        self.parts = None
        self._call("closed", code, reason)

    # -- the sweeper's side

    def sweep(self, now: float) -> None:
        """Ping a silent client; cut off one that neither answers nor finishes closing."""
        transport, limits = self.transport, self.server.limits
        if transport is None:
            return
        waited = now - self.since
        if not self.open:
            if waited > limits.linger_seconds:
                transport.abort()
        elif self.pinged:
            if waited > limits.pong_seconds:
                self.code, self.reason = INTERNAL_ERROR, "no answer to a ping"
                transport.abort()
        elif waited > limits.ping_seconds:
            self.pinged, self.since = True, now
            self.frames.send_ping(b"")
            self._flush()

    def retire(self) -> None:
        """The server is going away; the client may come back later."""
        self.close(GOING_AWAY, "the gateway is shutting down")


def open_websocket(
    server: "Server", transport: asyncio.Transport, request: Request, rest: bytes
) -> Response | None:
    """Answer an upgrade: the connection becomes a `WebSocket`, or the refusal is returned."""
    if server.upgrade is None:
        return refusal(426, "INVALID_ARGS", "no WebSocket is spoken here")
    frames = ServerProtocol(state=OPEN, max_size=server.limits.message_bytes, logger=frames_log)
    answer = frames.accept(_handshake(request))
    if answer.status_code != 101:
        reason = bytes(answer.body or b"")[:LONGEST_REASON].decode("utf-8", "replace").strip()
        return refusal(answer.status_code, "INVALID_ARGS", reason)
    try:
        handler = server.upgrade(request)
    except GatewayError as error:
        return error_response(error)
    if isinstance(handler, Response):
        return handler
    ws = WebSocket(server, transport, frames, handler, request.peer)
    transport.set_protocol(ws)
    server.connections.add(ws)
    transport.write(answer.serialize())
    ws._call("opened")
    if rest:
        ws.data_received(rest)
    return None


def _handshake(request: Request) -> Handshake:
    headers = Headers()
    for name, value in request.fields.items():
        headers[name.decode("ascii")] = value.decode("latin-1").strip()
    path, protocol = request.target.decode("ascii"), f"HTTP/{request.version}"
    return Handshake(path=path, headers=headers, method=request.method, protocol=protocol)

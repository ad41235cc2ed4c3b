"""One client's connection: bytes to requests, one task that answers them, responses back in order.

Reading and answering go on side by side, so that a lost client is noticed while its request is worked
on; requests that arrive meanwhile wait in `queue`. Nothing here sets a timer: `sweep` is called for
every connection once per tick.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable
from typing import TYPE_CHECKING, cast

from agent_gate.errors import GatewayError
from agent_gate.net.head import bad, refuse
from agent_gate.net.http import (
    BODILESS,
    HttpAnswer,
    Request,
    Response,
    StreamResponse,
    encode_response,
    error_response,
    header_lines,
    refusal,
)
from agent_gate.net.reading import BETWEEN, BODY, ENDED, HEAD, RequestReader
from agent_gate.net.tls.mutual import shown_certificate
from agent_gate.net.tls.records import RECORD, hold_little, in_records
from agent_gate.net.websocket import open_websocket

if TYPE_CHECKING:
    from agent_gate.net.server import Server

log = logging.getLogger("agent_gate.net")

SLICE = 64 * 1024
ANSWERS = (Response, StreamResponse)
INTERNAL = refusal(500, "INTERNAL", "the gateway failed on this request; its log has the details")


class Connection(RequestReader):
    """The server's end of one HTTP/1.1 connection."""

    __slots__ = (
        "backlog",
        "drained",
        "early",
        "outgoing",
        "queue",
        "queued_bytes",
        "stalled",
        "stalled_size",
        "stream",
        "task",
        "wanted",
    )

    def __init__(self, server: "Server") -> None:
        super().__init__(server)
        self.queue: deque[Request | Response] = deque()
        self.queued_bytes = 0
        self.backlog = self.outgoing = b""
        self.task: asyncio.Task[None] | None = None
        self.stream: StreamResponse | None = None
        self.early: asyncio.Task[bool] | None = None
        self.drained: asyncio.Future[None] | None = None
        self.wanted: asyncio.Future[Request | None] | None = None
        self.stalled = 0.0
        self.stalled_size = 0

    # -- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.peer, self.uid = self.server.identify(self.transport)
        self.since = self.server.now
        if self.server.secure:
            self.certificate = shown_certificate(self.transport)
            hold_little(self.transport)
        if not self.server.admit(self):
            self.transport.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        self.transport = None
        self.let_go()
        self.server.connections.discard(self)
        self.resume_writing()
        for waiting in self.queue:
            if isinstance(waiting, Request):
                waiting.lost()
        self.queue.clear()
        self._leave_task()

    def _leave_task(self) -> None:
        """The client is gone: its request runs on, a stream is cancelled."""
        self._stop_serving()
        task, self.task = self.task, None
        active, self.active = self.active, None
        if task is None or task.done() or active is None:
            return
        self.server.keep(task)
        if self.stream is not None:
            (self.early or task).cancel()
        active.lost()

    def _stop_serving(self) -> None:
        """End the task that waits for the next request."""
        wanted, self.wanted = self.wanted, None
        if wanted is not None and not wanted.done():
            wanted.set_result(None)

    def pause_writing(self) -> None:
        if self.drained is None and self.transport is not None:
            self.drained = self.server.loop.create_future()
            self.stalled = self.server.now
            self.stalled_size = self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        drained, self.drained = self.drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self.reading is ENDED:
            return
        if len(data) > SLICE or self.backlog:
            self.backlog += data
            self._work_backlog()
        else:
            self._feed(data)

    def _work_backlog(self) -> None:
        """Feed a long read in slices, so that one read cannot queue thousands of requests."""
        while self.backlog and self.reading is not ENDED and not self._full():
            piece, self.backlog = self.backlog[:SLICE], self.backlog[SLICE:]
            self._feed(piece)

    def _full(self) -> bool:
        limits = self.server.limits
        return len(self.queue) >= limits.pipelined or self.queued_bytes > limits.body_bytes

    def _take(self, request: Request) -> None:
        if self.active is None:
            self.active = request
            request.opener = self._begin
            wanted, self.wanted = self.wanted, None
            if wanted is None:
                self.task = self.server.loop.create_task(self._serve(request))
            else:
                wanted.set_result(request)
            return
        self.queue.append(request)
        self.queued_bytes += len(request.body)
        if self._full() and self.transport is not None:
            self.transport.pause_reading()

    def _open_websocket(self, request: Request, rest: bytes) -> None:
        self.flush()
        if self.active is not None or self.transport is None:
            self._refuse(bad("an Upgrade must not follow a request that is still being answered").response)
            return
        refused = open_websocket(self.server, self.transport, request, rest)
        if refused is not None:
            self._refuse(refused)
            return
        self.let_go()
        self.server.connections.discard(self)
        self.transport = None
        self._stop_serving()

    # -- answering

    def _refuse(self, response: Response) -> None:
        """Stop reading requests; after the answers that are still due, give this one and close."""
        self.reading = ENDED
        self.backlog = b""
        if self.active is None:
            self._write_last(response)
        else:
            self.queue.append(response)

    def flush(self) -> None:
        """Write what was held back to go out with the other answers of this turn."""
        data, self.outgoing = self.outgoing, b""
        if data and self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def _write_last(self, response: Response) -> None:
        self.flush()
        if self.transport is not None:
            data = encode_response(self.server.heads, response, keep_alive=False, head_only=False)
            self.transport.write(data)
            self._linger()

    def _linger(self, *, unread: bool = True) -> None:
        """End the connection so that the client can still read what was written.

        With unread input an immediate close would reset the connection and destroy the answer.
        """
        transport = self.transport
        self.reading = ENDED
        if transport is None or transport.is_closing():
            return
        self.flush()
        self.since = self.stalled = self.server.now
        self.stalled_size = transport.get_write_buffer_size()
        if not unread:
            transport.close()
            return
        transport.resume_reading()
        if transport.can_write_eof():
            transport.write_eof()

    async def _serve(self, request: Request | None) -> None:
        """Answer one request after the other: a task for each would cost more than many an answer."""
        while request is not None:
            if self.drained is not None and not await self._wait_for_reader():
                return
            found: HttpAnswer | Awaitable[HttpAnswer] | None
            response: HttpAnswer | None
            try:
                found = self.server.handler(request)
                response = found if isinstance(found, ANSWERS) else await found
            except GatewayError as error:
                response = error_response(error)
            except asyncio.CancelledError:
                if was_cancelled():
                    raise
                log.exception("the handler gave up on %s %s", request.method, request.path)
                response = INTERNAL
            except Exception:  # the boundary: a handler's fault is logged and becomes a 500
                log.exception("the handler failed on %s %s", request.method, request.path)
                response = INTERNAL
            if self.early is None and isinstance(response, Response):
                if self.server.secure and len(response.body) > RECORD:
                    await self._send_in_records(request, response)
                else:
                    self._send(request, response)
            elif not await self._stream(request, response):
                return
            # Whoever asked to hear of a lost client mostly holds the request too; such cycles cost the collector much.
            request.callbacks = request.opener = None
            # Nor may a connection that waits for its next request hold the answer to the last one.
            found = response = None
            request = self.active
            if request is None and self.transport is not None and self.reading is not ENDED:
                self.wanted = self.server.loop.create_future()
                request = await self.wanted

    async def _wait_for_reader(self) -> bool:
        """Whether the client has read the answers before; False where it left instead."""
        while self.drained is not None:
            await self.drained
        return self.transport is not None

    async def _stream(self, request: Request, response: HttpAnswer) -> bool:
        """Whether a whole stream went out: the one that the handler began, or else the one it returned."""
        if self.early is not None:
            early = self.early
            await asyncio.wait((early,))
            self.early = None
            whole = not early.cancelled() and early.result()
        else:
            whole = not isinstance(response, Response) and await self._send_stream(request, response)
        if whole:
            self._answered(keep_alive=request.keep_alive and not self.server.draining)
        return whole

    def _begin(self, response: StreamResponse) -> None:
        """The handler has something to say before its answer: stream it while the handler goes on."""
        if self.active is not None and self.early is None:
            self.early = self.server.loop.create_task(self._send_stream(self.active, response))
            self.server.keep(self.early)

    def _send(self, request: Request, response: Response) -> None:
        transport = self.transport
        if transport is None:
            self.active = None
            return
        server = self.server
        keep_alive = request.keep_alive and not server.draining
        head_only, large = request.method == "HEAD", len(response.body) > SLICE
        try:
            data = encode_response(
                server.heads, response, keep_alive=keep_alive, head_only=head_only or large
            )
        except ValueError:
            log.exception("the handler's response to %s %s cannot be sent", request.method, request.path)
            data = encode_response(server.heads, INTERNAL, keep_alive=keep_alive, head_only=False)
            large = False
        if not self.outgoing:
            server.outbox.add(self)
        self.outgoing += data
        if large and not head_only and response.status not in BODILESS:
            self.flush()
            transport.write(response.body)
        elif len(self.outgoing) > SLICE:
            self.flush()
        self._answered(keep_alive=keep_alive)

    async def _send_in_records(self, request: Request, response: Response) -> None:
        if request.method == "HEAD" or response.status in BODILESS:
            self._send(request, response)
            return
        keep_alive = request.keep_alive and not self.server.draining
        try:
            head = encode_response(self.server.heads, response, keep_alive=keep_alive, head_only=True)
        except ValueError:
            self._send(request, response)
            return
        self.flush()
        if self.transport is not None:
            self.transport.write(head)
        await self._write_in_records(response.body)
        if self.transport is None:
            self.active = None
        else:
            self._answered(keep_alive=keep_alive)

    async def _write_in_records(self, data: bytes) -> None:
        for record in in_records(data):
            if self.drained is not None:
                await self._wait_for_reader()
            if self.transport is None:
                return
            self.transport.write(record)

    def _answered(self, *, keep_alive: bool) -> None:
        """One response is out: go on with the next request, or end the connection."""
        self.active = None
        if not keep_alive:
            self.queue.clear()
            self._linger(unread=self.reading is not BETWEEN)
            return
        if self.reading is BETWEEN:
            self.since = self.server.now
        if self.queue:
            self._begin_next()
        elif self.owes_continue:
            self._continue()

    def _begin_next(self) -> None:
        item = self.queue.popleft()
        if isinstance(item, Response):
            self._write_last(item)
            return
        self.queued_bytes -= len(item.body)
        self.active = item
        item.opener = self._begin
        if self.backlog:
            self._work_backlog()
        transport = self.transport
        if transport is not None and not transport.is_closing() and not self._full():
            transport.resume_reading()

    async def _send_stream(self, request: Request, response: StreamResponse) -> bool:
        """True where the whole stream went out on a connection that can go on."""
        self.stream = response
        keep_alive = request.keep_alive and not self.server.draining
        chunked = request.version == "1.1"
        ok = False
        try:
            self._write_stream_head(response, chunked=chunked, keep_alive=keep_alive)
            if request.method != "HEAD":
                await self._pump(response, chunked=chunked)
            ok = True
        except Exception:  # the boundary: a stream's fault is logged and cuts the response
            log.exception("the response stream of %s %s failed", request.method, request.path)
        finally:
            self.stream = None
            await _close(response)
            if not ok and self.transport is not None:
                self.transport.abort()
        return ok and self.transport is not None

    def _write_stream_head(self, response: StreamResponse, *, chunked: bool, keep_alive: bool) -> None:
        self.flush()
        lines = self.server.heads[response.status, response.content_type] + header_lines(response.headers)
        if chunked:
            lines += b"transfer-encoding: chunked\r\n"
        if not keep_alive:
            lines += b"connection: close\r\n"
        if self.transport is not None:
            self.transport.write(lines + b"\r\n")

    async def _pump(self, response: StreamResponse, *, chunked: bool) -> None:
        if self.transport is None:
            return
        async for chunk in response.chunks:
            if chunk and self.transport is not None:
                data = b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk
                if self.server.secure and len(data) > RECORD:
                    await self._write_in_records(data)
                else:
                    self.transport.write(data)
            if self.drained is not None:
                await self.drained
        if chunked and self.transport is not None:
            self.transport.write(b"0\r\n\r\n")

    # -- the sweeper's side

    def sweep(self, now: float) -> None:
        """Hold this connection to its deadlines."""
        transport, limits = self.transport, self.server.limits
        if transport is None:
            return
        waited = now - self.since
        if self.drained is not None or (self.reading is ENDED and transport.get_write_buffer_size()):
            self._sweep_stalled(transport, now)
        elif self.reading is ENDED:
            if self.active is None and waited > limits.linger_seconds:
                transport.abort()
        elif self.reading is HEAD:
            if waited > limits.header_seconds:
                self._time_out("the request's head took too long")
        elif self.reading is BODY:
            self._sweep_body(now)
        elif self.active is None and waited > limits.keep_alive_seconds:
            self.retire()

    def _time_out(self, message: str) -> None:
        if not self.feeding:
            self.retire()
        else:
            self._refuse(refuse(408, "TIMEOUT", message).response)

    def _sweep_body(self, now: float) -> None:
        """A body must move on by `progress_bytes` per `body_seconds`, however evenly it trickles."""
        if self._full():
            self.since = now
        elif self.size - self.mark >= self.server.limits.progress_bytes:
            self.mark, self.since = self.size, now
        elif now - self.since > self.server.limits.body_seconds:
            self._time_out("the request's body took too long")

    def _sweep_stalled(self, transport: asyncio.Transport, now: float) -> None:
        """A reader too slow to take even a little of what waits for it is cut off."""
        size = transport.get_write_buffer_size()
        if self.stalled_size - size >= self.server.limits.progress_bytes:
            self.stalled_size, self.stalled = size, now
        elif now - self.stalled > self.server.limits.write_seconds:
            transport.abort()

    def retire(self) -> None:
        """End an idle connection; a busy one ends by itself once the server drains."""
        transport = self.transport
        if transport is None or self.active is not None:
            return
        if self.reading is BODY or (self.reading is HEAD and self.feeding):
            return
        self._linger(unread=False)


def was_cancelled() -> bool:
    """Whether a cancellation is meant for the task that runs; else it is one that somebody let escape."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _close(response: StreamResponse) -> None:
    """End the iterator wherever it stands; what it raises while closing is its own fault, and logged."""
    close = getattr(response.chunks, "aclose", None)
    if close is None:
        return
    try:
        await close()
    except Exception:  # the boundary of foreign code
        log.exception("closing a response stream failed")

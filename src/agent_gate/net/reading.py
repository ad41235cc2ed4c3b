"""Bytes to requests: the parser's callbacks, the checks of a head, and the bounds of a body.

What comes out is given to three methods of the class above: `_take` a whole request, `_refuse` what is
no acceptable one, `_open_websocket` when it asks to become a WebSocket.
"""

import asyncio
import logging
from abc import abstractmethod
from enum import IntEnum
from typing import TYPE_CHECKING

import httptools

from agent_gate.net.head import (
    METHODS,
    RefusedError,
    bad,
    check_body,
    check_count,
    check_size,
    check_target,
    check_upgrade,
    check_version,
    merged,
    overframed,
    refuse,
    too_large,
    too_long,
)
from agent_gate.net.http import Header, Request, Response
from agent_gate.net.known import KnownHead

if TYPE_CHECKING:
    from agent_gate.net.server import Server

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

log = logging.getLogger("agent_gate.net")


class Expecting(IntEnum):
    """What the next byte belongs to."""

    BETWEEN = 0
    HEAD = 1
    BODY = 2
    ENDED = 3


BETWEEN, HEAD, BODY, ENDED = Expecting
"""Looked at with every read, which is many times cheaper than through the class."""
ALLOW = (b"allow", b", ".join(METHODS))


class RequestReader(asyncio.Protocol):
    """The reading half of a connection."""

    __slots__ = (
        "active",
        "body",
        "certificate",
        "chunks",
        "feeding",
        "headers",
        "known",
        "mark",
        "owes_continue",
        "parser",
        "peer",
        "raw_left",
        "reading",
        "received",
        "request",
        "server",
        "since",
        "size",
        "started",
        "target",
        "transport",
        "uid",
        "unread",
    )

    def __init__(self, server: "Server") -> None:
        self.server = server
        self.transport: asyncio.Transport | None = None
        self.peer = ""
        self.uid: int | None = None
        self.certificate = b""
        self.parser = httptools.HttpRequestParser(self)
        self.reading = HEAD
        self.since = server.now
        self.target = self.unread = b""
        self.headers: list[Header] = []
        self.body: bytes | bytearray = b""
        self.chunks = 0
        self.feeding = self.started = self.received = self.size = self.mark = self.raw_left = 0
        self.known: KnownHead | None = None
        self.request: Request | None = None
        self.active: Request | None = None
        self.owes_continue = False

    @abstractmethod
    def _take(self, request: Request) -> None: ...

    @abstractmethod
    def flush(self) -> None: ...

    @abstractmethod
    def _refuse(self, response: Response) -> None: ...

    @abstractmethod
    def _open_websocket(self, request: Request, rest: bytes) -> None: ...

    def let_go(self) -> None:
        """Read no more, and drop the parser: it holds this reader, and the two would wait for the collector."""
        self.reading = ENDED
        del self.parser

    def _feed(self, data: bytes) -> None:
        if self.reading is BETWEEN or (self.reading is HEAD and not self.feeding):
            request = self._recognise(data)
            if request is not None:
                self.reading = BETWEEN
                self._take(request)
                return
            self.unread = data
        self._parse(data)
        self.unread = b""

    def _recognise(self, data: bytes) -> Request | None:
        """The request in `data`, if its head was parsed before; mostly it is the one this client sent last."""
        server, known = self.server, self.known
        if known is None or not data.startswith(known.head):
            known = self.known = server.known.find(data)
        # Only where its whole body and nothing else follows, and where that head was accepted.
        if known is None or len(data) != known.size or server.guard is not known.guard:
            return None
        server.known.repeated += 1
        return Request(
            known.method,
            known.target,
            known.fields,
            data[len(known.head) :],
            known.keep_alive,
            known.version,
            self.peer,
            server.secure,
            self.uid,
            self.certificate,
        )

    def _parse(self, data: bytes) -> None:
        while data and self.reading is not ENDED:
            if self.raw_left:
                data = self._take_raw(data)
            self.feeding = len(data)
            self.received += self.feeding
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as stop:
                data = self._upgrade(data[stop.args[0] :])
            except httptools.HttpParserError as error:
                self._malformed(error)
        if self.reading is HEAD and self.received > self.server.limits.header_bytes:
            self._refuse(too_long(self.server.limits.header_bytes).response)
        elif self.reading is BODY and self.received - self.size > self._framing():
            self._refuse(overframed().response)

    def _framing(self) -> int:
        """How many bytes beside its data a body may take: the lines that announce each chunk."""
        limits = self.server.limits
        return limits.header_bytes + self.chunks * limits.chunk_bytes

    def on_chunk_header(self) -> None:
        self.chunks += 1

    def on_message_begin(self) -> None:
        self.reading = HEAD
        self.since = self.server.now
        self.target = b""
        self.headers = []
        self.body, self.chunks = b"", 0
        self.received = self.size = self.mark = 0
        self.started = self.feeding

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.reading is BODY:
            raise bad("trailers after a chunked body are not accepted")
        self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        server, parser, headers, target = self.server, self.parser, self.headers, self.target
        if self.started + self.received > server.limits.header_bytes:
            check_size(target, headers, server.limits.header_bytes)
        check_count(headers, server.limits.headers)
        fields = dict(headers)
        if len(fields) != len(headers):
            fields = merged(headers)
        method = METHODS.get(parser.get_method())
        if method is None:
            raise refuse(405, "INVALID_ARGS", "this request method is not known here", (ALLOW,))
        check_target(method, target)
        version = parser.get_http_version()
        check_version(version, fields)
        check_body(fields, server.limits.body_bytes)
        request = Request(method, target, fields, version=version)
        request.keep_alive = version == "1.1" and parser.should_keep_alive()
        request.peer, request.secure, request.uid = self.peer, server.secure, self.uid
        request.certificate = self.certificate
        if server.guard is not None:
            refused = server.guard.check(request)
            if refused is not None:
                raise RefusedError(refused)
        self.request = request
        self.reading = BODY
        if b"expect" in fields:
            self.owes_continue = True
            self._continue()

    def on_body(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if self.size > self.server.limits.body_bytes:
            raise too_large(self.server.limits.body_bytes)
        self._add(chunk)

    def _add(self, chunk: bytes) -> None:
        """Join at once: a million small pieces would take fifty times the memory of what they hold."""
        if not self.body:
            self.body = chunk
            return
        if isinstance(self.body, bytes):
            self.body = bytearray(self.body)
        self.body += chunk

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            self._complete()

    def _complete(self) -> None:
        request, body = self.request, self.body
        assert request is not None
        if body:
            request.body, self.body = bytes(body), b""
        self.request = None
        self.server.known.parsed += 1
        self.owes_continue = False
        self.reading = BETWEEN
        if self.unread:
            self.server.known.learn(self.unread, request, self.server.guard)
        self._take(request)

    def _continue(self) -> None:
        """Ask for the body that the client holds back, once every earlier answer is out."""
        if self.owes_continue and self.active is None and self.transport is not None:
            self.owes_continue = False
            self.flush()
            self.transport.write(CONTINUE)

    def _upgrade(self, rest: bytes) -> bytes:
        """The parser stopped at an Upgrade: open a WebSocket, or go on as if it had not been asked for.

        Returns the bytes that are still to be read as HTTP.
        """
        request = self.request
        if request is None or self.reading is ENDED:
            return b""
        if (request.header(b"upgrade") or b"").lower() == b"websocket":
            try:
                check_upgrade(request.fields)
            except RefusedError as refused:
                self._refuse(refused.response)
                return b""
            self._open_websocket(request, rest)
            return b""
        if request.header(b"transfer-encoding") is not None:
            self._refuse(bad("a chunked body together with Upgrade is not accepted").response)
            return b""
        self.raw_left = int(request.header(b"content-length") or 0)
        if not self.raw_left:
            self._complete()
        return rest

    def _take_raw(self, data: bytes) -> bytes:
        """The body of a request whose Upgrade was ignored; the parser does not read those."""
        part, rest = data[: self.raw_left], data[self.raw_left :]
        self.raw_left -= len(part)
        self.size += len(part)
        self._add(part)
        if not self.raw_left:
            self._complete()
        return rest

    def _malformed(self, error: httptools.HttpParserError) -> None:
        cause = error.__context__
        if isinstance(cause, RefusedError):
            self._refuse(cause.response)
        elif self.reading is not ENDED:
            if cause is not None:
                log.error("reading a request failed", exc_info=cause)
            self._refuse(bad(f"this is not a well-formed HTTP request: {error}").response)

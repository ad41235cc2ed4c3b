"""Requests and responses as the surfaces see them, and how a response's head becomes bytes.

A `Request` is complete when a handler gets it: its head was checked and its body is read. Header values
stay bytes and are looked at only when asked for.
"""

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from email.utils import formatdate
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from agent_gate.core.credentials import Header as Header
from agent_gate.errors import GatewayError, InvalidArgs

log = logging.getLogger("agent_gate.net")

JSON = b"application/json"
BODILESS = frozenset({204, 304})
REASONS = {status.value: status.phrase.encode("ascii") for status in HTTPStatus}
BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

encode_json = msgspec.json.encode


class Request(msgspec.Struct, eq=False):
    """One request. Names in `fields` are lower case, repeated list headers joined by commas; `target` is what
    stood in the request line. `certificate` is what the client showed of itself over TLS, in DER, once it was verified.
    """

    method: str
    target: bytes
    fields: dict[bytes, bytes]
    body: bytes = b""
    keep_alive: bool = True
    version: str = "1.1"
    peer: str = ""
    secure: bool = False
    uid: int | None = None
    certificate: bytes = b""
    connected: bool = True
    opener: "Callable[[StreamResponse], None] | None" = None
    callbacks: list[Callable[[], object]] | None = None
    decoded: dict[str, str] | None = None

    def header(self, name: bytes) -> bytes | None:
        """One header's value by its lower-case name."""
        return self.fields.get(name)

    @property
    def path(self) -> str:
        """The path as sent, still percent-encoded, without the query."""
        target = self.target
        cut = target.find(b"?")
        return (target if cut < 0 else target[:cut]).decode("ascii")

    @property
    def query(self) -> str:
        """What followed the first `?`, undecoded."""
        return self.target.partition(b"?")[2].decode("ascii")

    def params(self) -> dict[str, str]:
        """The query decoded strictly; a bad escape, bad UTF-8 or a repeated name is refused."""
        if self.decoded is None:
            self.decoded = parse_query(self.query)
        return self.decoded

    def form(self) -> dict[str, str]:
        """The body as a form, decoded like the query."""
        return parse_query(self.body.decode("ascii", "replace"))

    def on_disconnect(self, callback: Callable[[], object]) -> None:
        """Call back once if the client's connection is lost before the response ended."""
        if not self.connected:
            callback()
        elif self.callbacks is None:
            self.callbacks = [callback]
        else:
            self.callbacks.append(callback)

    def begin(self, response: "StreamResponse") -> None:
        """Start to answer with a stream while the handler still runs; what it returns is then dropped."""
        if self.opener is not None:
            self.opener(response)

    def lost(self) -> None:
        """The client is gone: tell everyone who asked."""
        self.connected = False
        callbacks, self.callbacks = self.callbacks, None
        for callback in callbacks or ():
            try:
                callback()
            except Exception:  # one bad callback must not silence the others
                log.exception("a disconnect callback failed for %s", self.path)


def parse_query(query: str) -> dict[str, str]:
    """`a=1&b=%20` to a dict; `+` is a space, as forms write it."""
    out: dict[str, str] = {}
    for pair in query.split("&") if query else ():
        name, _, value = pair.partition("=")
        key = _unquote(name)
        if key in out:
            raise InvalidArgs(f"the query parameter {key[:100]!r} is given twice; give it once")
        out[key] = _unquote(value)
    return out


def _unquote(text: str) -> str:
    if BAD_ESCAPE.search(text):
        raise InvalidArgs("the query has a broken percent escape; write % as %25")
    try:
        return unquote_to_bytes(text.replace("+", " ")).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidArgs("the query is not UTF-8 after percent-decoding") from None


class Response(msgspec.Struct, eq=False):
    """A whole answer. `headers` must not repeat Content-Type, Content-Length or Connection."""

    status: int
    body: bytes = b""
    headers: Sequence[Header] = ()
    content_type: bytes = JSON


class StreamResponse:
    """An answer whose body is an async iterator of bytes, sent chunk by chunk as the client reads.

    When the client goes away the iterator is cancelled and closed; work that must outlive it needs a task of its own.
    """

    __slots__ = ("chunks", "content_type", "headers", "status")

    def __init__(
        self,
        status: int,
        chunks: AsyncIterator[bytes],
        headers: Sequence[Header] = (),
        content_type: bytes = b"text/event-stream",
    ) -> None:
        self.status = status
        self.chunks = chunks
        self.headers = headers
        self.content_type = content_type


HttpAnswer = Response | StreamResponse
Handler = Callable[[Request], HttpAnswer | Awaitable[HttpAnswer]]
"""Answers a request, at once where nothing has to be waited for."""


def json_response(status: int, value: Any, headers: Sequence[Header] = ()) -> Response:
    """A JSON answer; bytes are taken as JSON already encoded."""
    return Response(status, value if isinstance(value, bytes) else encode_json(value), headers)


def error_response(error: GatewayError, headers: Sequence[Header] = ()) -> Response:
    """An error in its one outward form, with Retry-After where it says when to come back."""
    if error.retry_after is not None:
        headers = (*headers, (b"retry-after", b"%d" % max(1, round(error.retry_after))))
    return json_response(error.status, {"error": error.as_dict()}, headers)


def refusal(status: int, code: str, message: str, headers: Sequence[Header] = ()) -> Response:
    """An answer given before any handler saw the request."""
    return json_response(status, {"error": {"code": code, "message": message, "retryable": False}}, headers)


class ResponseHeads(dict[tuple[int, bytes], bytes]):
    """The start of a response's head per status and content type, with this second's Date in it."""

    def __missing__(self, key: tuple[int, bytes]) -> bytes:
        status, content_type = key
        date = formatdate(usegmt=True).encode("ascii")
        reason = REASONS.get(status, b"Unknown")
        head = b"HTTP/1.1 %d %b\r\ndate: %b\r\nx-content-type-options: nosniff\r\n" % (status, reason, date)
        if content_type and status not in BODILESS:
            head += b"content-type: %b\r\n" % content_type
        self[key] = head
        return head


def header_lines(headers: Iterable[Header]) -> bytes:
    """Header lines as bytes; a line break smuggled in by a name or value is a ValueError."""
    lines = [b"%b: %b\r\n" % header for header in headers]
    block = b"".join(lines)
    if not block.count(b"\r") == block.count(b"\n") == len(lines) or b"\0" in block:
        raise ValueError("a header name or value has a line break or NUL in it")
    return block


def encode_response(heads: ResponseHeads, response: Response, *, keep_alive: bool, head_only: bool) -> bytes:
    """The whole response as bytes, ready for one write."""
    status, body = response.status, response.body
    lines = heads[status, response.content_type]
    if response.headers:
        lines += header_lines(response.headers)
    if not keep_alive:
        lines += b"connection: close\r\n"
    if status in BODILESS:
        return lines + b"\r\n"
    if head_only:
        return b"%bcontent-length: %d\r\n\r\n" % (lines, len(body))
    return b"%bcontent-length: %d\r\n\r\n%b" % (lines, len(body), body)

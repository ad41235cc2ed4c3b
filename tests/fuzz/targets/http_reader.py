"""Bytes from a stranger to HTTP requests: the same however they arrive, and nothing another reader reads otherwise."""

import logging
from hashlib import sha256
from random import Random
from types import SimpleNamespace
from typing import Any

import h11
from tests.fuzz.fuzzing import Target

from agent_gate.net.http import Request, Response
from agent_gate.net.known import KnownHeads
from agent_gate.net.limits import Limits
from agent_gate.net.reading import Expecting, RequestReader

LIMITS = Limits(header_bytes=2048, body_bytes=4096)


class Noted(RequestReader):
    """A reader that writes down what it understood instead of answering it."""

    def __init__(self) -> None:
        super().__init__(
            SimpleNamespace(limits=LIMITS, now=0.0, guard=None, secure=False, known=KnownHeads())
        )  # type: ignore[arg-type]
        self.read: list[tuple[Any, ...]] = []
        self.refused = 0

    def _take(self, request: Request) -> None:
        self.read.append(
            (request.method, request.target, tuple(sorted(request.fields.items())), request.body)
        )

    def _refuse(self, response: Response) -> None:
        assert 400 <= response.status < 600
        assert len(response.body) < 1000
        self.reading = Expecting.ENDED
        self.refused += 1

    def _open_websocket(self, request: Request, rest: bytes) -> None:
        self.reading = Expecting.ENDED
        self.read.append(("WS", request.target, tuple(sorted(request.fields.items())), rest))

    def flush(self) -> None: ...


def read(pieces: list[bytes]) -> Noted:
    reader = Noted()
    for piece in pieces:
        if piece and reader.reading is not Expecting.ENDED:
            reader._feed(piece)
    return reader


def run(data: bytes) -> None:
    failures = logging.getLogger("agent_gate.net")
    noted: list[logging.LogRecord] = []
    failures.addFilter(note := lambda record: noted.append(record) is None and False)
    try:
        whole, split = read([data]), read(cut(data))
    finally:
        failures.removeFilter(note)
    assert not noted, noted[0].exc_info
    assert whole.refused <= 1
    upgraded = any(row[0] == "WS" for row in whole.read)
    if not upgraded:
        assert [*whole.read] == [*split.read], "the same bytes were read otherwise when they came in pieces"
        # A head that is too long and has not ended is refused by the next read at the latest.
        assert whole.refused == split.refused or len(data) > LIMITS.header_bytes
    for row in whole.read:
        assert len(row[3]) <= LIMITS.body_bytes or row[0] == "WS"
    agrees(data, whole)


def cut(data: bytes) -> list[bytes]:
    random = Random(sha256(data).digest())
    places = sorted(random.randrange(len(data)) for _ in range(random.randint(1, 6))) if data else []
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def agrees(data: bytes, ours: Noted) -> None:
    """What h11 also takes as a request has the same method, target and body there."""
    theirs = h11.Connection(h11.SERVER)
    theirs.receive_data(data)
    for method, target, _fields, body in ours.read:
        if method == "WS" or any(name in dict(_fields) for name in (b"upgrade", b"expect")):
            return
        try:
            event = theirs.next_event()
            got = b""
            while not isinstance(piece := theirs.next_event(), h11.EndOfMessage):
                if not isinstance(piece, h11.Data):
                    return
                got += bytes(piece.data)
        except h11.RemoteProtocolError:
            return
        if not isinstance(event, h11.Request):
            return
        assert (event.method.decode(), event.target, got) == (method, target, body)
        if theirs.their_state is not h11.DONE:
            return
        theirs.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
        theirs.send(h11.EndOfMessage())
        if theirs.our_state is not h11.DONE:
            return
        theirs.start_next_cycle()


TARGET = Target(
    "http_reader",
    run,
    words=(
        b"GET / HTTP/1.1\r\n", b"POST /a?b=%20 HTTP/1.1\r\n", b"Host: 127.0.0.1\r\n", b"Content-Length: 3\r\n", b"\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", b"3\r\nabc\r\n", b";a=b", b"Connection: Upgrade\r\n", b"Upgrade: websocket\r\n",
        b"Upgrade: h2c\r\n", b"Expect: 100-continue\r\n", b"HTTP/1.0", b"Connection: close\r\n", b" ", b"\t", b": ", b",", b"\x0b",
    ),
)  # fmt: skip

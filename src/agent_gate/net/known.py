"""Heads seen before: a client that repeats one, byte for byte, is not parsed and checked again."""

from typing import Any

import msgspec

from agent_gate.net.http import Request

MOST = 1024
LONGEST = 2048
END = b"\r\n\r\n"
AMBIGUOUS = (b"transfer-encoding", b"expect", b"upgrade")


class KnownHead(msgspec.Struct):
    """What all requests with the same head share, and where that head was accepted."""

    head: bytes
    size: int
    method: str
    target: bytes
    fields: dict[bytes, bytes]
    version: str
    keep_alive: bool
    guard: Any


class KnownHeads:
    """The heads that were accepted as they are; bounded, and forgotten all at once when full.

    `repeated` and `parsed` count requests, so that it shows when clients stop being recognised.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, KnownHead] = {}
        self.repeated = self.parsed = 0

    def find(self, data: bytes) -> KnownHead | None:
        """The head that `data` begins with, if it is known."""
        at = data.find(END)
        return self._known.get(data[: at + 4]) if 0 < at <= LONGEST else None

    def learn(self, data: bytes, request: Request, guard: Any) -> None:
        """Remember the head of `request`, if `data` is that request and nothing else."""
        at, fields = data.find(END), request.fields
        if not 0 < at <= LONGEST or at + 4 + len(request.body) != len(data):
            return
        if any(name in fields for name in AMBIGUOUS):
            return
        if len(self._known) >= MOST:
            self._known.clear()
        head = data[: at + 4]
        self._known[head] = KnownHead(
            head,
            len(data),
            request.method,
            request.target,
            fields,
            request.version,
            request.keep_alive,
            guard,
        )

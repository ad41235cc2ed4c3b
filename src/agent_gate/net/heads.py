"""Heads seen before: a client that repeats one, byte for byte, is not parsed and checked again."""

from collections.abc import Hashable
from typing import Any

import msgspec

from agent_gate.net.http import Header, Request

MOST = 1024
LONGEST = 2048
END = b"\r\n\r\n"
AMBIGUOUS = (b"transfer-encoding", b"expect", b"upgrade")


class KnownHead(msgspec.Struct):
    """What all requests with the same head share. `notes` is for handlers, who may keep there what they read."""

    method: str
    target: bytes
    headers: list[Header]
    fields: dict[bytes, bytes]
    version: str
    keep_alive: bool
    length: int
    guard: Any
    notes: dict[Hashable, Any]

    def request(self, body: bytes) -> Request:
        request = Request(self.method, self.target, self.headers, self.fields, body=body)
        request.version = self.version
        request.keep_alive = self.keep_alive
        request.notes = self.notes
        return request


class KnownHeads:
    """The heads that were accepted as they are; bounded, and forgotten all at once when full."""

    def __init__(self) -> None:
        self._known: dict[bytes, KnownHead] = {}

    def find(self, data: bytes, guard: Any) -> Request | None:
        """The request in `data`, if that is a known head with its whole body and nothing else."""
        at = data.find(END)
        known = self._known.get(data[:at]) if 0 < at <= LONGEST else None
        if known is None or len(data) != at + 4 + known.length or known.guard is not guard:
            return None
        return known.request(data[at + 4 :])

    def learn(self, data: bytes, request: Request, guard: Any) -> None:
        """Remember the head of `request`, if `data` is that request and nothing else."""
        at, fields = data.find(END), request.fields
        if not 0 < at <= LONGEST or at + 4 + len(request.body) != len(data):
            return
        if any(name in fields for name in AMBIGUOUS):
            return
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[data[:at]] = KnownHead(
            request.method,
            request.target,
            request.headers,
            fields,
            request.version,
            request.keep_alive,
            len(request.body),
            guard,
            {},
        )

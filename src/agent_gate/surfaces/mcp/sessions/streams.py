"""`Stream`: messages for one client as Server-Sent Events, kept for a while so that a lost connection can resume."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from agent_gate.mcp.messages import one_line

PING_SECONDS = 15.0
MOST_EVENTS = 1024
MOST_BYTES = 1024 * 1024
PING = b": ping\n\n"
RETRY_MS = 1000


class Stream:
    """A queue of events with one reader. With a `name` its events carry ids and can be read again."""

    def __init__(self, name: str = "", *, prime: bool = False, most: int = MOST_EVENTS) -> None:
        self.name = name.encode()
        self._most = most
        self.prime = prime
        self.ended = False
        self.sequence = 0
        self.sent = 0
        self._events: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self._reader = 0
        self._wake: asyncio.Future[None] | None = None

    @property
    def size(self) -> int:
        """How many bytes its events have."""
        return self._size

    @property
    def watched(self) -> bool:
        return self._wake is not None

    def put(self, message: bytes) -> None:
        self.sequence += 1
        head = b"id: %b-%d\n" % (self.name, self.sequence) if self.name else b""
        frame = b"event: message\n%bdata: %b\n\n" % (head, one_line(message))
        self._events.append((self.sequence, frame))
        self._size += len(frame)
        while len(self._events) > self._most or (self._size > MOST_BYTES and len(self._events) > 1):
            self._size -= len(self._events.popleft()[1])
        self._tell()

    def end(self) -> None:
        self.ended = True
        self._tell()

    def _tell(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _priming(self) -> bytes:
        """An event without data: the id to resume from if nothing else arrives."""
        return b"id: %b-%d\nretry: %d\ndata: \n\n" % (self.name, self.sent, RETRY_MS)

    async def read_chunks(self, after: int | None = None) -> AsyncIterator[bytes]:
        """What is to be sent, from `after` on, else from where the last reader stopped; a new reader ends the old."""
        self._reader += 1
        mine = self._reader
        if after is not None:
            self.sent = after
        self._tell()
        if self.prime and self.name:
            yield self._priming()
        try:
            while mine == self._reader:
                for frame in self._unsent():
                    yield frame
                if self.ended and self.sent == self.sequence:
                    return
                if not await self._wait_for_change(mine):
                    yield PING
        finally:
            if mine == self._reader:
                self._wake = None

    def _unsent(self) -> list[bytes]:
        frames = [frame for number, frame in self._events if number > self.sent]
        self.sent = self.sequence
        if not self.name:
            self._events.clear()
            self._size = 0
        return frames

    async def _wait_for_change(self, mine: int) -> bool:
        """Wait for something new; False when a sign of life is due first."""
        if mine != self._reader or self.sequence > self.sent:
            return True
        wake = self._wake = asyncio.get_running_loop().create_future()
        woken, _ = await asyncio.wait([wake], timeout=PING_SECONDS)
        return bool(woken)

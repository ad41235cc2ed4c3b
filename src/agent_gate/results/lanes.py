"""Shares a few places fairly among callers: each caller, a lane, has one turn at a time, and those that wait take turns."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from agent_gate.errors import DependencyUnavailable


class Lanes:
    """Who waits longest within a lane goes first; no lane gets a second turn while another waits for its first."""

    def __init__(self, places: int, most_waiting: int) -> None:
        self._free, self._most = places, most_waiting
        self._busy: set[Hashable] = set()
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, lane: Hashable) -> AsyncIterator[None]:
        await self._enter(lane)
        try:
            yield
        finally:
            self._leave(lane)

    async def _enter(self, lane: Hashable) -> None:
        if self._free and lane not in self._busy:
            self._take(lane)
            return
        queue = self._waiting.setdefault(lane, deque())
        if len(queue) >= self._most:
            raise DependencyUnavailable(
                f"You already wait for {self._most} looks into large results. Ask again when one has come",
                retry_after=1,
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(lane)
            raise

    def _take(self, lane: Hashable) -> None:
        self._free -= 1
        self._busy.add(lane)

    def _leave(self, lane: Hashable) -> None:
        self._free += 1
        self._busy.discard(lane)
        for other in [other for other in self._waiting if other not in self._busy]:
            queue = self._waiting.pop(other)
            turn = _next(queue)
            if queue:
                self._waiting[other] = queue
            if turn is not None:
                self._take(other)
                turn.set_result(None)
                return


def _next(queue: deque[asyncio.Future[None]]) -> asyncio.Future[None] | None:
    """The first who still waits."""
    while queue:
        turn = queue.popleft()
        if not turn.done():
            return turn
    return None

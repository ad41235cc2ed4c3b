"""Leases: what only one of the processes on a store may do at a time, each for a bounded while."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent_gate.core.ports import Clock
from agent_gate.store.statement import Conflict, Statement, Store

TAKE = (
    "INSERT INTO leases (name, holder, expires_at) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
    "holder = excluded.holder, expires_at = excluded.expires_at WHERE leases.expires_at <= ?"
)
GIVE_BACK = "DELETE FROM leases WHERE name = ? AND holder = ?"
LOOK_AGAIN = 0.1


class Leases:
    """Takes and gives back; `take` is a compare-and-set, so that two never hold one lease."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def take(self, name: str, seconds: float) -> str | None:
        """The holder's token for `give_back`; None while somebody else holds the lease."""
        holder, now = secrets.token_hex(8), self._clock.now()
        try:
            await self._store.write(Statement(TAKE, (name, holder, now + seconds, now), expect=1))
        except Conflict:
            return None
        return holder

    async def give_back(self, name: str, holder: str) -> None:
        await self._store.write(Statement(GIVE_BACK, (name, holder)))

    async def forget_all(self) -> None:
        """After a start on a store that nobody else has open: whoever held a lease is dead."""
        await self._store.write(Statement("DELETE FROM leases"))

    @asynccontextmanager
    async def held(self, name: str, seconds: float, wait: float) -> AsyncIterator[bool]:
        """Hold the lease for the block, waiting up to `wait` seconds for it; false where it could not be had."""
        deadline = self._clock.monotonic() + wait
        while (holder := await self.take(name, seconds)) is None and self._clock.monotonic() < deadline:
            await asyncio.sleep(LOOK_AGAIN)
        try:
            yield holder is not None
        finally:
            if holder is not None:
                await self.give_back(name, holder)

"""Leases: what only one of the processes on a store may do at a time, each for a bounded while.

They end by the database's clock, so that gateways whose clocks differ agree about it.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from agent_gate.core.ports import Clock
from agent_gate.errors import DependencyUnavailable
from agent_gate.store.statement import Conflict, Statement, Store

GIVE_BACK = "DELETE FROM leases WHERE name = ? AND holder = ?"
LOOK_AGAIN = 0.1
EXCLUSIVE_SECONDS = 10.0
SURE_SECONDS = EXCLUSIVE_SECONDS - 2.0
"""How long after asking for it one who was given a lease does what it allows: so that it has stopped when another begins."""


async def hear_in_time(asked: Awaitable[bool], seconds: float | None) -> bool:
    """Whether a lease is one's own; `TimeoutError` where the store does not say so while the last one lasts."""
    async with asyncio.timeout(seconds):
        return await asked


class Leases:
    """Takes and gives back; `take` is a compare-and-set, so that two never hold one lease."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def take(self, name: str, seconds: float, holder: str = "") -> str | None:
        """The holder for `give_back`; None while somebody else holds the lease. Who has it already keeps it for longer."""
        holder, now = holder or secrets.token_hex(8), self._store.now
        sql = (
            f"INSERT INTO leases (name, holder, expires_at) VALUES (?, ?, {now} + ?) ON CONFLICT (name) DO UPDATE SET "
            "holder = excluded.holder, expires_at = excluded.expires_at "
            f"WHERE leases.expires_at <= {now} OR leases.holder = excluded.holder"
        )
        try:
            await self._store.write(Statement(sql, (name, holder, seconds), expect=1))
        except Conflict:
            return None
        return holder

    async def list_holders(self) -> dict[str, str]:
        """Who holds what now, by the lease's name."""
        sql = f"SELECT name, holder FROM leases WHERE expires_at > {self._store.now}"
        return dict(await self._store.read(sql))

    async def give_back(self, name: str, holder: str) -> None:
        await self._store.write(Statement(GIVE_BACK, (name, holder)))

    async def forget_over(self) -> None:
        """Forget what nobody holds any more, since its holder died or let it end."""
        await self._store.write(Statement(f"DELETE FROM leases WHERE expires_at <= {self._store.now}"))

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


class Exclusive:
    """Something that one gateway at a time does: `began` starts it, `ended` stops it. It is looked at again and again.

    On a store of one gateway that one does it, and nothing is written.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        name: str,
        began: Callable[[], Awaitable[object]],
        ended: Callable[[], Awaitable[object]],
    ) -> None:
        self._store, self._clock, self._leases = store, clock, Leases(store, clock)
        self.name, self._began, self._ended = name, began, ended
        self._until = 0.0
        self.held = False

    async def look(self) -> None:
        """Take or keep it; give it up where that cannot be said in time."""
        asked = self._clock.monotonic()
        try:
            ours = not self._store.shared or await hear_in_time(self._take(), self._left(asked))
        except (DependencyUnavailable, TimeoutError):
            if self.held and self._clock.monotonic() >= self._until:
                await self._give_up()
            return
        if ours:
            self._until = asked + SURE_SECONDS
            if not self.held:
                self.held = True
                await self._began()
        elif self.held:
            await self._give_up()

    def _left(self, now: float) -> float | None:
        return max(0.0, self._until - now) if self.held else None

    async def _take(self) -> bool:
        return await self._leases.take(self.name, EXCLUSIVE_SECONDS, self._store.chain) is not None

    async def _give_up(self) -> None:
        self.held = False
        await self._ended()

    async def close(self) -> None:
        """Stop it, and let the next one have it at once."""
        if not self.held:
            return
        await self._give_up()
        if self._store.shared:
            with suppress(DependencyUnavailable):
                await self._leases.give_back(self.name, self._store.chain)

"""Notices: what another gateway changed in the store that this one keeps in memory.

PostgreSQL writes a row in `notices` in the transaction of each change (`migrations/postgres`) and notifies. The
notification carries nothing: it only says that there is something to read. So one that is lost, with its connection or
otherwise, costs the time until the next look, a second at most. The rows of one gateway are committed in their order,
since it has one writer; so what was read of each is one number.

On a store of one gateway there is nothing to hear, and nothing runs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

from agent_gate.core.ports import Clock
from agent_gate.core.tasks import KeptTasks, ends_within
from agent_gate.errors import GatewayError
from agent_gate.store.statement import Param, Statement, Store

log = logging.getLogger("agent_gate.notices")
LOOK_SECONDS = 1.0
KEEP_SECONDS = 600.0
HearNotice = Callable[[Collection[str] | None], Awaitable[object]]
"""Takes the keys that changed; None for everything, after so long a silence that nobody knows what did."""


class NoticeSubscriber:
    """One who wants to hear of a topic: told of everything once, one thing after the other, and again where it failed."""

    def __init__(self, heard: HearNotice) -> None:
        self._heard = heard
        self._owed: set[str] = set()
        self._everything = False
        self.telling: asyncio.Task[None] | None = None

    def owe(self, keys: Collection[str] | None) -> None:
        if keys is None:
            self._everything = True
        else:
            self._owed.update(keys)

    @property
    def due(self) -> bool:
        busy = self.telling is not None and not self.telling.done()
        return not busy and (self._everything or bool(self._owed))

    async def tell(self) -> None:
        """Tell what is owed, and what comes to be owed meanwhile. What could not be taken now waits for the next look."""
        while (self._everything or self._owed) and await self._tell_once():
            pass

    async def _tell_once(self) -> bool:
        keys, self._owed = None if self._everything else self._owed, set()
        self._everything = False
        try:
            await self._heard(keys)
        except GatewayError as error:
            self.owe(keys)
            log.info("A notice waits for the next look: %s", error.message)
            return False
        except Exception:  # the boundary: the others are still told
            log.exception("A notice could not be taken")
        return True


class StoreNotices:
    """Reads what the others wrote and tells who subscribed. `lag` is how old the last notice was when it was read."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._subscriptions: dict[str, list[NoticeSubscriber]] = {}
        self._read: dict[str, int] = {}
        self._looked = clock.monotonic()
        self._wake, self._catching_up = asyncio.Event(), asyncio.Lock()
        self._tasks = KeptTasks(log, "A notice could not be taken")
        self.lag = 0.0

    def subscribe(self, topic: str, heard: HearNotice) -> None:
        self._subscriptions.setdefault(topic, []).append(NoticeSubscriber(heard))

    async def begin(self) -> None:
        """From here on nothing is missed; to be called before anything is read into memory."""
        if self._store.shared:
            rows = await self._store.read("SELECT gateway, max(seq) FROM notices GROUP BY gateway")
            self._read = dict(rows)
            self._looked = self._clock.monotonic()

    async def run(self) -> None:
        """Look whenever there is news, and every second; until cancelled."""
        if not self._store.shared:
            return
        hearing = asyncio.ensure_future(self._store.hear(self._wake.set))
        try:
            while True:
                await ends_within(LOOK_SECONDS, self._wake.wait())
                self._wake.clear()
                await self._attempt()
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            await self._tasks.cancel()

    async def _attempt(self) -> None:
        try:
            await self.look()
        except GatewayError as error:
            log.debug("Notices cannot be read now: %s", error.message)
        except Exception:  # the boundary: what is cached must not stay as it is for ever
            log.exception("Notices cannot be read; it is tried again")

    async def catch_up(self, *topics: str) -> None:
        """Return when whoever subscribed to `topics` has heard what was changed before now, or after a second. However
        many ask at once, one look serves all who asked before it began."""
        asked = self._clock.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                async with self._catching_up:
                    if self._looked < asked:
                        await self._attempt()
                subscribed = [one for topic in topics for one in self._subscriptions.get(topic, ())]
                if telling := [one.telling for one in subscribed if one.telling is not None]:
                    await asyncio.wait(telling)

    async def look(self) -> None:
        """Read what is new, and see that everybody who subscribed is told."""
        began = self._clock.monotonic()
        silent = began - self._looked
        for gateway, seq, topic, key, age in await self._store.read(*self._unread()):
            self._read[gateway] = max(seq, self._read.get(gateway, 0))
            self.lag = max(0.0, round(float(age), 3))
            self._owe(topic, (key,))
        self._looked = began
        if silent > KEEP_SECONDS / 2:
            for topic in self._subscriptions:
                self._owe(topic, None)
        for subscriptions in self._subscriptions.values():
            for one in subscriptions:
                if one.due:
                    one.telling = self._tasks.start(one.tell())

    def _owe(self, topic: str, keys: Collection[str] | None) -> None:
        for one in self._subscriptions.get(topic, ()):
            one.owe(keys)

    def _unread(self) -> tuple[str, tuple[Param, ...]]:
        """Of each gateway what comes after the last that was read; of one that is new, everything."""
        known = {gateway: seq for gateway, seq in self._read.items() if gateway != self._store.chain}
        names = [self._store.chain, *known]
        later = "".join(" OR (gateway = ? AND seq > ?)" for _ in known)
        sql = (
            f"SELECT gateway, seq, topic, key, {self._store.now} - at FROM notices "
            f"WHERE gateway NOT IN ({', '.join('?' * len(names))}){later} ORDER BY seq"
        )
        return sql, (*names, *(part for pair in known.items() for part in pair))

    async def purge(self) -> None:
        """Forget what everybody who lives has read."""
        if self._store.shared:
            await self._store.write(
                Statement(f"DELETE FROM notices WHERE at < {self._store.now} - {KEEP_SECONDS}")
            )

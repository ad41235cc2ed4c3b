"""`BrowsingPool`: what each session has open, opened on first use, closed when idle, bounded in number and memory."""

import asyncio
import logging
from pathlib import Path

from agent_gate.core.call import Call, new_id
from agent_gate.core.ports import Clock
from agent_gate.errors import DependencyUnavailable, RateLimited
from agent_gate.sources.browser.browsing import Browsing
from agent_gate.sources.browser.engine import BrowserEngine, first_line, page_errors
from agent_gate.sources.browser.settings import BrowserSettings

log = logging.getLogger("agent_gate.sources.browser")
TIDY_SECONDS = 5.0
SPARE_SECONDS = 60.0

BrowsingKey = tuple[str, str]


def key_of(call: Call) -> BrowsingKey:
    return call.caller.name, call.session or ""


class BrowsingPool:
    def __init__(self, settings: BrowserSettings, folder: Path, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self.engine = BrowserEngine(settings, folder, self._lost)
        self.open_now: dict[BrowsingKey, Browsing] = {}
        self._opening = asyncio.Lock()
        self._lost_words: dict[BrowsingKey, str] = {}

    def of(self, call: Call) -> Browsing | None:
        """What this call's session has open."""
        found = self.open_now.get(key_of(call))
        return found if found is not None and found.alive else None

    async def open(self, call: Call) -> Browsing:
        """What this call's session has open, opened where it is nothing yet."""
        async with self._opening:
            found, key = self.of(call), key_of(call)
            if found is not None:
                return found
            await self._make_room()
            browsing = Browsing(new_id(), call.caller.name, self.engine, self._settings, self._clock)
            await self._enter(browsing)
            self.open_now[key] = browsing
            if key in self._lost_words:
                browsing.note(self._lost_words.pop(key))
            return browsing

    async def _enter(self, browsing: Browsing) -> None:
        try:
            await browsing.__aenter__()
        except page_errors() as error:
            raise DependencyUnavailable(f"No page can be opened: {first_line(error)}") from None

    async def _make_room(self) -> None:
        """Sessions that are gone go first, then the one that was idle longest, if it was for a while."""
        for browsing in [one for one in self.open_now.values() if not one.alive]:
            await self.close(browsing)
        if len(self.open_now) < self._settings.max_contexts:
            return
        oldest = min(self.open_now.values(), key=lambda one: one.used)
        if oldest.lock.locked() or self._clock.monotonic() - oldest.used < SPARE_SECONDS:
            raise RateLimited(
                f"All {self._settings.max_contexts} browsers are in use (browser.max_contexts). Try again in a minute",
                retry_after=SPARE_SECONDS,
            )
        await self.close(oldest)

    def find(self, key: str) -> Browsing | None:
        return next((one for one in self.open_now.values() if one.id == key and one.alive), None)

    def tell(self, browsing: Browsing, why: str) -> None:
        """Have a session told at its next page why this one is gone."""
        for key, one in self.open_now.items():
            if one is browsing:
                self._lost_words[key] = why

    async def close(self, browsing: Browsing) -> None:
        self.drop(browsing)
        await browsing.__aexit__(None, None, None)

    async def end(self, key: BrowsingKey) -> None:
        """Close what a session has open that is over, once its last call has ended."""
        async with self._opening:
            browsing = self.open_now.get(key)
            self._lost_words.pop(key, None)
        if browsing is not None:
            async with browsing.lock:
                await self.close(browsing)

    def drop(self, browsing: Browsing) -> None:
        for key in [key for key, one in self.open_now.items() if one is browsing]:
            del self.open_now[key]

    def _lost(self, why: str) -> None:
        """The browser ended by itself: each session is told at its next call."""
        for key in self.open_now:
            self._lost_words[key] = why

    async def keep_tidy(self) -> None:
        """Close what is idle, for ever."""
        while True:
            await asyncio.sleep(min(TIDY_SECONDS, self._settings.idle / 4))
            async with self._opening:
                await self._tidy()

    async def _tidy(self) -> None:
        now, most = self._clock.monotonic(), self._settings.max_megabytes
        for browsing in list(self.open_now.values()):
            idle = now - browsing.used > self._settings.idle and not browsing.lock.locked()
            if idle or not browsing.alive:
                await self.close(browsing)
        if not self.engine.running:
            return
        if not self.open_now:
            await self.engine.kill()
        elif await asyncio.to_thread(self.engine.megabytes) > most:
            log.warning("The browser takes too much memory and is replaced")
            self._lost(f"The browser took more than {most} MB and was replaced; navigate again")
            await self.engine.kill()

    async def stop(self) -> None:
        for browsing in list(self.open_now.values()):
            await self.close(browsing)
        await self.engine.stop()

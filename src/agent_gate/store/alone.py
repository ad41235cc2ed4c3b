"""What is marked as done by one gateway at a time, such as a server that may run once only."""

from collections.abc import Callable
from contextlib import suppress

from agent_gate.core.ports import Clock
from agent_gate.errors import DependencyUnavailable
from agent_gate.store.leases import EXCLUSIVE_SECONDS, SURE_SECONDS, Leases, hear_in_time
from agent_gate.store.statement import Store

PREFIX = "single:"


class AloneLeases:
    """Leases by the key of what is done, renewed while this gateway lives. `changed` is told the key of each that this
    gateway has now and had not, or the other way round."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock, self._leases = store, clock, Leases(store, clock)
        self._wanted: dict[str, float] = {}
        self.held: set[str] = set()
        self.changed: Callable[[str], None] = lambda _key: None

    async def take(self, key: str) -> bool:
        """Be the one who does it; false where another gateway is."""
        ours = not self._store.shared or await self._ask(key)
        (self.held.add if ours else self.held.discard)(key)
        return ours

    async def _ask(self, key: str) -> bool:
        asked = self._clock.monotonic()
        self._wanted.setdefault(key, 0.0)
        ours = await self._leases.take(f"{PREFIX}{key}", EXCLUSIVE_SECONDS, self._store.chain) is not None
        if ours:
            self._wanted[key] = asked + SURE_SECONDS
        return ours

    async def look(self) -> None:
        """Keep what is held, and take what is free."""
        for key in list(self._wanted):
            try:
                ours = await hear_in_time(self._ask(key), self._left(key))
            except (DependencyUnavailable, TimeoutError):
                ours = key in self.held and self._clock.monotonic() < self._wanted[key]
            if ours != (key in self.held):
                (self.held.add if ours else self.held.discard)(key)
                self.changed(key)

    def _left(self, key: str) -> float | None:
        return max(0.0, self._wanted[key] - self._clock.monotonic()) if key in self.held else None

    async def close(self) -> None:
        """Let others have it at once; to be called when it is done no more."""
        for key in self.held:
            with suppress(DependencyUnavailable):
                await self._leases.give_back(f"{PREFIX}{key}", self._store.chain)
        self.held.clear()

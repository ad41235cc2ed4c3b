"""One ticking task for every deadline, because a timer per call costs more than the rest of the call."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from agent_gate.core.ports import Clock

TICK = 0.05


class Watched(Protocol):
    deadline: float
    timed_out: bool
    task: asyncio.Task[object] | None


class Sweeper:
    """Cancels what ran past its deadline, and runs the chores that are due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watched: set[Watched] = set()
        self._chores: list[tuple[float, Callable[[], Awaitable[object]]]] = []

    def watch(self, item: Watched) -> None:
        self._watched.add(item)

    def forget(self, item: Watched) -> None:
        self._watched.discard(item)

    def every(self, seconds: float, chore: Callable[[], Awaitable[object]]) -> None:
        self._chores.append((seconds, chore))

    def sweep(self) -> None:
        """Cancel every watched task whose deadline has passed."""
        now = self._clock.monotonic()
        for item in [item for item in self._watched if item.deadline <= now]:
            self._watched.discard(item)
            item.timed_out = True
            if item.task is not None:
                item.task.cancel()

    async def run(self) -> None:
        due = {index: self._clock.monotonic() + seconds for index, (seconds, _) in enumerate(self._chores)}
        while True:
            await asyncio.sleep(TICK)
            self.sweep()
            now = self._clock.monotonic()
            for index, (seconds, chore) in enumerate(self._chores):
                if due[index] <= now:
                    due[index] = now + seconds
                    await chore()

"""One ticking task for every deadline, because a timer per call costs more than the rest of the call.

Who runs a call puts it into `watched` and takes it out at its end. Twenty times a second the sweeper cancels what is
past its deadline, and marks it, so that its owner tells a timeout from a caller who hung up. The same tick starts the
chores (to expire questions, to purge rows), each in a task of its own: one that hangs delays itself alone. Without the
tick no call would ever time out, and no question expire.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from agent_gate.core.ports import Clock
from agent_gate.errors import GatewayError

log = logging.getLogger("agent_gate.calls")
HOUR = 3600.0
TICK = 0.05


class Watched(Protocol):
    deadline: float
    timed_out: bool
    task: asyncio.Task[object] | None


class Chore:
    """Something to do every so many seconds. Its failure is logged, and it is done again when it is next due."""

    def __init__(self, seconds: float, work: Callable[[], Awaitable[object]], now: float) -> None:
        self._seconds, self._work = seconds, work
        self._due = now + seconds
        self.task: asyncio.Task[None] | None = None

    def start_if_due(self, now: float) -> None:
        """Begin in a task of its own, unless the last time is not over yet."""
        if now >= self._due and (self.task is None or self.task.done()):
            self._due = now + self._seconds
            self.task = asyncio.get_running_loop().create_task(self._run_once())

    async def _run_once(self) -> None:
        try:
            await self._work()
        except GatewayError as error:
            log.warning("A chore waits for its next turn: %s", error.message)
        except Exception:  # the boundary: one chore's fault must not end the others
            log.exception("A chore failed; it is tried again")


class Sweeper:
    """Cancels what ran past its deadline, and starts the chores that are due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.watched: set[Watched] = set()
        """What is held to its deadline, for as long as it is in here."""
        self._chores: list[Chore] = []

    def run_every(self, seconds: float, work: Callable[[], Awaitable[object]]) -> None:
        self._chores.append(Chore(seconds, work, self._clock.monotonic()))

    def sweep(self) -> None:
        """Cancel every watched task whose deadline has passed."""
        now = self._clock.monotonic()
        for item in [item for item in self.watched if item.deadline <= now]:
            self.watched.discard(item)
            item.timed_out = True
            if item.task is not None:
                item.task.cancel()

    async def run(self) -> None:
        """Tick until cancelled; a chore that fails or takes long holds up no deadline."""
        try:
            while True:
                await asyncio.sleep(TICK)
                self.sweep()
                now = self._clock.monotonic()
                for chore in self._chores:
                    chore.start_if_due(now)
        finally:
            busy = [chore.task for chore in self._chores if chore.task is not None]
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)

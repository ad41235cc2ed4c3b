"""Who shares the next commit, and when it is made: once the event loop has nothing to add.

Calls come in crowds, because those who were told of one commit soon ask for the next. A writer that is woken for
the first of them commits a part, and fights the loop for the interpreter over the rest. So it is woken when as many
wait as lately did, or after a few turns of the loop that brought nobody, which an idle loop has at once, and at the
latest after a millisecond of turns that did. No timer is involved: a loop with nothing to do does not wait.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sized

QUIET_TURNS = 8
PATIENCE = 0.001
LATELY = 8


class Cohort:
    """Those who share a commit. Everything but `taken` belongs to the event loop."""

    def __init__(self, queue: Sized, wake: Callable[[], None]) -> None:
        self._queue, self._wake = queue, wake
        self._sizes: deque[int] = deque([1], LATELY)
        self._joined = self._seen = self._quiet = 0
        self._usual = 1
        self._until = 0.0
        self._gathering = self._called = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.taken = 0
        """How many of those who joined the writer has taken; only the writer changes it."""

    def join(self, loop: asyncio.AbstractEventLoop) -> None:
        """Somebody waits for a commit."""
        self._joined += 1
        if not self._gathering and not self._called:
            self._gather(loop)

    def _gather(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._gathering = True
        self._seen, self._quiet = len(self._queue), 0
        self._until = loop.time() + PATIENCE
        loop.call_soon(self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Once per turn: wait for more, or call the writer."""
        seen, self._seen = self._seen, len(self._queue)
        self._quiet = self._quiet + 1 if seen == self._seen else 0
        here = self._joined - self.taken
        if here < self._usual and self._quiet < QUIET_TURNS and loop.time() < self._until:
            loop.call_soon(self._look, loop)
            return
        self._sizes.append(here)
        self._usual = max(self._sizes)
        self._gathering, self._called = False, True
        self._wake()

    def came_back(self) -> None:
        """The writer wrote what there was."""
        self._called = False
        if self._joined != self.taken and not self._gathering and self.loop is not None:
            self._gather(self.loop)

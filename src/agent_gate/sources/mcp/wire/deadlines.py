"""Many deadlines on one timer: almost none of them is ever reached, and a timer each would cost more than they do."""

import asyncio
import math
from collections.abc import Callable, Hashable
from time import monotonic

SLACK = 0.001


class Deadlines:
    """Calls back for what is still here when its time (monotonic) has come."""

    def __init__(self) -> None:
        self.waiting: dict[Hashable, tuple[float, Callable[[], None]]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.fires_at = math.inf

    def add(self, key: Hashable, when: float, expire: Callable[[], None]) -> None:
        self.waiting[key] = (when, expire)
        if when < self.fires_at:
            self.fire_at(when)

    def drop(self, key: Hashable) -> None:
        self.waiting.pop(key, None)

    def fire_at(self, when: float) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.fires_at = when
        self.timer = asyncio.get_running_loop().call_later(max(0.0, when - monotonic()), self.fire)

    def fire(self) -> None:
        self.timer, self.fires_at = None, math.inf
        now = monotonic() + SLACK
        due = [(key, expire) for key, (when, expire) in self.waiting.items() if when <= now]
        for key, expire in due:
            self.drop(key)
            expire()
        following = min((when for when, _ in self.waiting.values()), default=math.inf)
        if following < self.fires_at:
            self.fire_at(following)

    def close(self) -> None:
        """Forget everything; nothing is called back any more."""
        self.waiting.clear()
        if self.timer is not None:
            self.timer.cancel()
        self.timer, self.fires_at = None, math.inf

"""How much a caller does: a sliding minute per caller, for its calls and for its looks at tools and results."""

import heapq
from collections import deque
from operator import itemgetter

from agent_gate.core.call import Caller
from agent_gate.core.ports import Clock
from agent_gate.errors import RateLimited

WINDOW = 60.0
LOOK_AGAIN = 5.0
"""When to come back where only other gateways know when there is room."""
LOOKS = 10
"""Looks that go with one call: finding a tool takes a few, reading a large result some more."""


class Quota:
    """Counts calls per caller and refuses those over the limit, saying when to come back.

    `each` is how many of what is counted here go with one call.
    """

    def __init__(self, clock: Clock, what: str = "calls", each: int = 1) -> None:
        self._clock, self._what, self._each = clock, what, each
        self._times: dict[str, deque[float]] = {}
        self._elsewhere: dict[str, int] = {}

    def hear_others(self, used: dict[str, int]) -> None:
        """What other gateways counted in their last minute, by caller, as far as they said so."""
        self._elsewhere = used

    def most_used(self, most: int) -> list[tuple[str, int]]:
        """How much was counted of each caller in the last minute, the most first."""
        since = self._clock.monotonic() - WINDOW
        for times in self._times.values():
            while times and times[0] <= since:
                times.popleft()
        counted = ((name, len(times)) for name, times in self._times.items() if times)
        return heapq.nlargest(most, counted, key=itemgetter(1))

    def last(self, name: str) -> float | None:
        """When this caller was last counted, on the monotonic clock."""
        times = self._times.get(name)
        return times[-1] if times else None

    def take(self, caller: Caller) -> None:
        limit = caller.calls_per_minute * self._each
        if not limit:
            return
        now = self._clock.monotonic()
        times = self._times.get(caller.name)
        if times is None:
            times = self._times[caller.name] = deque()
        while times and times[0] <= now - WINDOW:
            times.popleft()
        elsewhere = self._elsewhere.get(caller.name, 0) if self._elsewhere else 0
        if len(times) + elsewhere >= limit:
            wait = max(0.1, times[0] + WINDOW - now) if times else LOOK_AGAIN
            raise RateLimited(
                f"Rate limit exceeded: {limit} {self._what} a minute. Try again in {wait:.0f} s",
                retry_after=wait,
            )
        times.append(now)

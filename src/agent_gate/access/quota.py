"""How much a caller does: a sliding minute per caller, for its calls and for its looks at tools and results."""

from collections import deque

from agent_gate.core.call import Caller
from agent_gate.core.ports import Clock
from agent_gate.errors import RateLimited

WINDOW = 60.0
LOOKS = 10
"""Looks that go with one call: finding a tool takes a few, reading a large result some more."""


class Quota:
    """Counts calls per caller and refuses those over the limit, saying when to come back.

    `each` is how many of what is counted here go with one call.
    """

    def __init__(self, clock: Clock, what: str = "calls", each: int = 1) -> None:
        self._clock, self._what, self._each = clock, what, each
        self._times: dict[str, deque[float]] = {}

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
        if len(times) >= limit:
            wait = max(0.1, times[0] + WINDOW - now)
            raise RateLimited(
                f"Rate limit exceeded: {limit} {self._what} a minute. Try again in {wait:.0f} s",
                retry_after=wait,
            )
        times.append(now)

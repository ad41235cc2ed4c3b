"""How many calls a caller makes: a sliding minute per caller."""

from collections import deque

from agent_gate.core.call import Caller
from agent_gate.core.ports import Clock
from agent_gate.errors import RateLimited

WINDOW = 60.0


class Quota:
    """Counts calls per caller and refuses those over the limit, saying when to come back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: dict[str, deque[float]] = {}

    def take(self, caller: Caller) -> None:
        limit = caller.calls_per_minute
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
                f"Rate limit exceeded: {limit} calls a minute. Try again in {wait:.0f} s", retry_after=wait
            )
        times.append(now)

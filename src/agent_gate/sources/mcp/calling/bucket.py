"""How often one server may be called: a token bucket that makes a call wait, or says when to come back."""

import asyncio

from agent_gate.core.ports import Clock
from agent_gate.errors import RateLimited

BURST_SHARE = 10


class Bucket:
    """`per_minute` calls a minute, a tenth of them at once; 0 limits nothing until the server itself does."""

    def __init__(self, per_minute: int, clock: Clock, title: str) -> None:
        self.interval = 60 / per_minute if per_minute else 0.0
        self.burst = max(per_minute // BURST_SHARE, 1) * self.interval
        self.clock = clock
        self.title = title
        self.free_at = 0.0
        self.blocked_until = 0.0
        self.limits = per_minute > 0

    async def take(self, deadline: float) -> None:
        """Return when the next call may go; `RateLimited` when that is after its deadline."""
        now = self.clock.monotonic()
        ready = max(self.free_at - self.burst + self.interval, self.blocked_until, now)
        if ready >= deadline:
            raise RateLimited(
                f"{self.title} may not be called that often; try again later", retry_after=ready - now
            )
        self.free_at = max(self.free_at, ready) + self.interval
        if ready > now:
            await asyncio.sleep(ready - now)

    def block(self, seconds: float) -> None:
        """The server asked to be left alone for so long."""
        self.blocked_until = max(self.blocked_until, self.clock.monotonic() + seconds)
        self.limits = True

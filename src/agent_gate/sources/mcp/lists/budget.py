"""How much of our work a server may cause by itself, per minute."""

from collections import deque

from agent_gate.core.ports import Clock

MINUTE = 60.0


class Budget:
    """So many of something in any minute."""

    def __init__(self, most: int, clock: Clock) -> None:
        self.clock = clock
        self.taken: deque[float] = deque(maxlen=most)

    def take(self) -> float:
        """0 where one more is within the budget, and counts; else the seconds until one is."""
        now = self.clock.monotonic()
        if len(self.taken) == self.taken.maxlen and (wait := self.taken[0] + MINUTE - now) > 0:
            return wait
        self.taken.append(now)
        return 0.0

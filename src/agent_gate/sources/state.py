"""What a source that failed is told and tried by: its first line for agents, when to try again, and its circuit."""

import random

from agent_gate.errors import DependencyUnavailable

FIRST_DELAY = 0.5
LONGEST_DELAY = 60.0
HEALTHY_AFTER = 60.0
FAILURES_TO_OPEN = 5
FIRST_OPEN_SECONDS = 1.0
LONGEST_OPEN_SECONDS = 30.0


class ConnectionGone(DependencyUnavailable):
    """The connection to a source had ended before anything was sent; it is being connected again."""


def sentence(reason: str) -> str:
    """What agents are told of a reason. What a program printed stands in the lines below, for the operator alone."""
    return reason.partition("\n")[0]


def delay(failures: int, rng: random.Random | None = None) -> float:
    """Exponential backoff with full jitter, from half a second to a minute."""
    ceiling = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(failures, 16))
    return (rng or random).uniform(FIRST_DELAY / 2, ceiling)


class Circuit:
    """Stops asking a source that failed again and again; lets a call through after a second, and later more and more
    seldom."""

    def __init__(self) -> None:
        self.failures = 0
        self.open_until = 0.0

    def wait(self, now: float) -> float:
        """Seconds until a call may go through; 0 when it may now."""
        return max(0.0, self.open_until - now) if self.failures >= FAILURES_TO_OPEN else 0.0

    def failed(self, now: float) -> None:
        self.failures += 1
        if self.failures >= FAILURES_TO_OPEN:
            tried = min(self.failures - FAILURES_TO_OPEN, 10)
            self.open_until = now + min(FIRST_OPEN_SECONDS * 2**tried, LONGEST_OPEN_SECONDS)

    def worked(self) -> None:
        self.failures = 0

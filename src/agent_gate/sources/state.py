"""The state of one source as people see it, and when to try again."""

import random
from dataclasses import dataclass
from enum import StrEnum

from agent_gate.errors import DependencyUnavailable

FIRST_DELAY = 0.5
LONGEST_DELAY = 60.0
HEALTHY_AFTER = 60.0
FAILURES_TO_OPEN = 5
FIRST_OPEN_SECONDS = 1.0
LONGEST_OPEN_SECONDS = 30.0


class ConnectionGone(DependencyUnavailable):
    """The connection to a source had ended before anything was sent; it is being connected again."""


class Status(StrEnum):
    DISABLED = "disabled"
    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    DEGRADED = "degraded"
    FAILED = "failed"
    NEEDS_AUTH = "needs_auth"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """What is shown of a source: where it stands, why, since when, and when it is tried again.

    `broken_since` lasts over all tries that fail; the last error is told also when it is well again.
    """

    key: str
    namespace: str
    kind: str
    title: str
    status: Status
    reason: str = ""
    since: float = 0.0
    broken_since: float | None = None
    last_error: str = ""
    last_error_at: float | None = None
    next_try: float | None = None
    tools: int = 0


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

"""The last hour in numbers: metrics sampled every few seconds into throughput, failures and latency."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Any

from agent_gate.core.ports import Clock
from agent_gate.observe.metrics import BUCKETS, Counter, Histogram, Metrics

EVERY = 10.0
KEPT = 360
FAILED = frozenset({"failed", "unknown"})


def failures(calls: Counter) -> float:
    place = calls.labels.index("state")
    return sum(number for labels, number in calls.values.items() if labels[place] in FAILED)


def summed(histogram: Histogram) -> list[float]:
    """All label combinations of a histogram as one row of bucket counts."""
    rows = list(histogram.values.values())
    return [sum(column) for column in zip(*rows, strict=True)][:-1] if rows else [0.0] * (len(BUCKETS) + 1)


def percentile(counts: Sequence[float], part: float) -> float | None:
    """The value below which `part` of the observations lie, interpolated within its bucket; None without any."""
    total = sum(counts)
    if not total:
        return None
    running, wanted = [0.0], part * total
    for number in counts:
        running.append(running[-1] + number)
    index = max(1, bisect_left(running, wanted)) - 1
    low = BUCKETS[index - 1] if index else 0.0
    high = BUCKETS[index] if index < len(BUCKETS) else BUCKETS[-1]
    share = (wanted - running[index]) / counts[index] if counts[index] else 1.0
    return low + (high - low) * share


class Trends:
    """Keeps one point per interval; each is the difference to the one before."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics, self._clock = metrics, clock
        self.points: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._before = self._read()

    def _read(self) -> tuple[float, float, float, list[float]]:
        metrics = self._metrics
        calls, refused = sum(metrics.calls.values.values()), sum(metrics.refusals.values.values())
        return calls, failures(metrics.calls), refused, summed(metrics.server)

    async def sample(self) -> None:
        now, before = self._read(), self._before
        counts = [new - old for new, old in zip(now[3], before[3], strict=True)]
        self._before = now
        self.points.append(
            {
                "at": self._clock.now(),
                "calls": now[0] - before[0],
                "failed": now[1] - before[1],
                "refused": now[2] - before[2],
                "p50": percentile(counts, 0.5),
                "p95": percentile(counts, 0.95),
            }
        )

    def totals(self) -> dict[str, Any]:
        """Since the process started."""
        calls, failed, refused, counts = self._read()
        return {
            "calls": calls,
            "failed": failed,
            "refused": refused,
            "p50": percentile(counts, 0.5),
            "p95": percentile(counts, 0.95),
            "p99": percentile(counts, 0.99),
        }

"""What lies below a part of all durations, read off the buckets of a histogram."""

from bisect import bisect_left
from collections.abc import Sequence

from agent_gate.observe.metrics import BUCKETS, Histogram


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

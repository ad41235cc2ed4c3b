"""What the numbers were: stretches of time that are added up, and what they show over an hour, a day, a week or a month.

Pure. Who counts the rows of the record, and keeps what they come to, is `audit/counting.py`.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from agent_gate.observe.metrics import BUCKETS
from agent_gate.observe.percentiles import percentile

HOUR, DAY = 3600, 86_400
MOST_AGENTS = 50
MOST_TROUBLES = 100
OTHER = "other"
BETWEEN = "\n"  # neither a tool's id nor an agent's name has one
RAN = frozenset({"failed", "unknown"})


class Stretch(msgspec.Struct, omit_defaults=True):
    """What happened in a stretch of time at one gateway.

    `buckets` counts calls by how long their sources took, in the buckets of the metrics; `took` is the sum of it. People
    answered `waits` questions after `waited` seconds in all. Of each agent: calls that ran, that failed, that were
    refused. `troubles` says of a tool and an agent how often it failed and when last. `until` is the last row of the
    record that was counted.
    """

    calls: int = 0
    failed: int = 0
    refused: int = 0
    buckets: list[float] = msgspec.field(default_factory=lambda: [0.0] * (len(BUCKETS) + 1))
    took: float = 0.0
    waits: float = 0.0
    waited: float = 0.0
    agents: dict[str, list[int]] = {}
    reasons: dict[str, int] = {}
    troubles: dict[str, tuple[int, float]] = {}
    until: int = 0

    def count(self, agent: str, state: str, number: int) -> None:
        mine = self._of(agent)
        if state == "refused":
            self.refused += number
            mine[2] += number
        elif state == "completed" or state in RAN:
            self.calls += number
            mine[0] += number
        if state in RAN:
            self.failed += number
            mine[1] += number

    def _of(self, agent: str) -> list[int]:
        place = agent if agent in self.agents or len(self.agents) < MOST_AGENTS else OTHER
        return self.agents.setdefault(place, [0, 0, 0])

    def trouble(self, key: str, number: int, last: float) -> None:
        place = key if key in self.troubles or len(self.troubles) < MOST_TROUBLES else OTHER
        before, latest = self.troubles.get(place, (0, 0.0))
        self.troubles[place] = (before + number, max(latest, last))

    def because(self, reason: str, number: int) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + number

    def add(self, more: "Stretch") -> None:
        self.calls += more.calls
        self.failed += more.failed
        self.refused += more.refused
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, more.buckets, strict=True)]
        self.took += more.took
        self.waits += more.waits
        self.waited += more.waited
        self.until = max(self.until, more.until)
        for reason, number in more.reasons.items():
            self.because(reason, number)
        for key, (number, last) in more.troubles.items():
            self.trouble(key, number, last)
        for agent, numbers in more.agents.items():
            mine = self._of(agent)
            mine[:] = [a + b for a, b in zip(mine, numbers, strict=True)]

    @property
    def empty(self) -> bool:
        return not (self.calls or self.refused or self.waits or self.reasons or sum(self.buckets))

    def shown(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "failed": self.failed,
            "refused": self.refused,
            "p50": percentile(self.buckets, 0.5),
            "p95": percentile(self.buckets, 0.95),
            "p99": percentile(self.buckets, 0.99),
            "machine": self.took,
            "waits": self.waits,
            "waited": self.waited,
        }


def total_of(stretches: Iterable[Stretch]) -> Stretch:
    total = Stretch()
    for stretch in stretches:
        total.add(stretch)
    return total


class Range(msgspec.Struct, frozen=True):
    """A time to look back over: rows of `step` seconds, a point per `point`, an agent's use per `slot`."""

    seconds: int
    step: int
    point: int
    slot: int

    def first(self, now: float) -> float:
        """Where it begins; the last point is the one that `now` is in."""
        return now - now % self.point - self.seconds + self.point


RANGES = {
    "hour": Range(HOUR, 60, 60, 300),
    "day": Range(DAY, 300, 900, HOUR),
    "week": Range(7 * DAY, HOUR, HOUR, DAY),
    "month": Range(30 * DAY, HOUR, 6 * HOUR, DAY),
}
GatewayStretch = tuple[str, float, Stretch]
"""Whose, since when, and what."""


def over_range(
    span: Range, first: float, stretches: Iterable[GatewayStretch], gateway: str | None
) -> dict[str, Any]:
    """The numbers of this range, of one gateway or of all: points, totals, reasons, agents, and each gateway's share."""
    points = [Stretch() for _ in range(span.seconds // span.point)]
    shares: dict[str, Stretch] = {}
    use: dict[str, list[int]] = {}
    for owner, at, stretch in stretches:
        shares.setdefault(owner, Stretch()).add(stretch)
        place = int((at - first) // span.point)
        if (gateway is None or owner == gateway) and place < len(points):
            points[place].add(stretch)
            slot = int((at - first) // span.slot)
            for agent, (calls, _, _) in stretch.agents.items():
                use.setdefault(agent, [0] * (span.seconds // span.slot))[slot] += calls
    total = total_of(points)
    return {
        "every": span.point,
        "slot": span.slot,
        "from": first,
        "points": [{"at": first + span.point * place, **point.shown()} for place, point in enumerate(points)],
        "totals": total.shown(),
        "reasons": sorted(total.reasons.items(), key=lambda pair: -pair[1]),
        "agents": [
            {"agent": name, "calls": calls, "failed": failed, "refused": refused, "use": use.get(name, [])}
            for name, (calls, failed, refused) in sorted(total.agents.items(), key=lambda pair: -pair[1][0])
        ],
        "gateways": {owner: share.shown() for owner, share in sorted(shares.items())},
    }


class Failures(msgspec.Struct, frozen=True):
    """How often calls of one tool by one caller failed, and when last."""

    caller: str
    tool: str
    count: int
    last: float


def list_failures(troubles: Stretch) -> list[Failures]:
    """Whose calls failed, the last one first."""
    found = []
    for key, numbers in troubles.troubles.items():
        tool, caller = key.split(BETWEEN)
        found.append(Failures(caller, tool, *numbers))
    return sorted(found, key=lambda one: -one.last)

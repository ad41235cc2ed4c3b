"""What the numbers were: calls, failures, time and agents per minute, per five minutes and per hour.

Once a minute, and when somebody looks, the rows that this gateway added to the record since then are counted, each once,
and added up in one row per length of time. So a look back over a month reads hundreds of rows, however many calls there
were, and a call itself costs nothing more.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent_gate.core.ports import Clock
from agent_gate.observe.metrics import BUCKETS, Histogram, Metrics
from agent_gate.observe.percentiles import percentile, summed
from agent_gate.store import Param, Statement, Store

HOUR, DAY = 3600, 86_400
KEPT = {60: 2 * HOUR, 300: 2 * DAY, HOUR: 32 * DAY}
"""For how long a row of so many seconds is kept."""
MOST_READ = 5_000
MOST_AGENTS = 50
MOST_TROUBLES = 100
OTHER = "other"
WELL = (
    "SELECT caller, count(*) FROM record WHERE chain = ? AND seq > ? AND seq <= ? AND state = 'completed' "
    "GROUP BY caller"
)
BADLY = (
    "SELECT caller, state, body, tool, at FROM record WHERE chain = ? AND seq > ? AND seq <= ? "
    "AND state IN ('failed', 'unknown', 'refused', 'denied', 'expired') ORDER BY seq LIMIT ?"
)
PUT = (
    "INSERT INTO trends (gateway, step, at, body) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (gateway, step, at) DO UPDATE SET body = excluded.body"
)
FORGET = "DELETE FROM trends WHERE step = ? AND at < ?"
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
        place = agent if agent in self.agents or len(self.agents) < MOST_AGENTS else OTHER
        mine = self.agents.setdefault(place, [0, 0, 0])
        if state == "refused":
            self.refused += number
            mine[2] += number
        elif state == "completed" or state in RAN:
            self.calls += number
            mine[0] += number
        if state in RAN:
            self.failed += number
            mine[1] += number

    def trouble(self, key: str, number: int, last: float) -> None:
        place = key if key in self.troubles or len(self.troubles) < MOST_TROUBLES else OTHER
        before, latest = self.troubles.get(place, (0, 0.0))
        self.troubles[place] = (before + number, max(latest, last))

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
            self.reasons[reason] = self.reasons.get(reason, 0) + number
        for key, (number, last) in more.troubles.items():
            self.trouble(key, number, last)
        for agent, numbers in more.agents.items():
            place = agent if agent in self.agents or len(self.agents) < MOST_AGENTS else OTHER
            mine = self.agents.get(place, [0, 0, 0])
            self.agents[place] = [a + b for a, b in zip(mine, numbers, strict=True)]

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


def reason_of(state: str, body: Mapping[str, Any]) -> str:
    """Why a call did not go well: the code of its error, or what people said or did not say."""
    error = body.get("error")
    return str(error.get("code", state)) if isinstance(error, Mapping) else state


def sums(histogram: Histogram) -> tuple[float, float]:
    """How many durations a histogram has, and their sum."""
    rows = histogram.values.values()
    return sum(sum(row[:-1]) for row in rows), sum(row[-1] for row in rows)


class Trends:
    """Counts what this gateway did, and keeps it by time."""

    def __init__(self, store: Store, metrics: Metrics, clock: Clock) -> None:
        self._store, self._metrics, self._clock = store, metrics, clock
        self._open: dict[int, tuple[float, Stretch]] = {}
        self._counted: int | None = None
        self._start = store.head.seq
        self._before = self._measured()
        self._turn = asyncio.Lock()

    def _measured(self) -> tuple[list[float], float, float, float]:
        metrics = self._metrics
        return summed(metrics.client), sums(metrics.client)[1], *sums(metrics.waits)

    async def note(self) -> None:
        """Add what happened since the last time."""
        async with self._turn:
            if self._counted is None:
                self._counted = await self._resume()
            measured, head = self._measured(), self._store.head.seq
            if head == self._counted and measured == self._before:
                return
            fresh = await self._count(self._counted, head)
            self._measure(fresh, measured)
            if not fresh.empty:
                await self._store.write(*self._grown(fresh))
            self._before, self._counted = measured, head

    async def _resume(self) -> int:
        """Go on where the process before this one was; up to which row it had counted."""
        rows = await self._store.read(
            "SELECT step, at, body FROM trends WHERE gateway = ? AND at >= ? ORDER BY at",
            (self._store.chain, self._clock.now() - HOUR),
        )
        for step, at, body in rows:
            self._open[int(step)] = (at, msgspec.json.decode(body, type=Stretch))
        known = [stretch.until for _, stretch in self._open.values()]
        return max(known, default=self._start)

    async def _count(self, after: int, until: int) -> Stretch:
        """The rows of this gateway's chain in between."""
        fresh = Stretch(until=until)
        here: tuple[Param, ...] = (self._store.chain, after, until)
        for caller, number in await self._store.read(WELL, here):
            fresh.count(caller, "completed", number)
        for caller, state, text, tool, at in await self._store.read(BADLY, (*here, MOST_READ)):
            body = msgspec.json.decode(text)
            number = int(body.get("count", 1))
            fresh.count(caller, state, number)
            if state in RAN:
                fresh.trouble(f"{tool}{BETWEEN}{caller}", number, at)
            reason = reason_of(state, body)
            fresh.reasons[reason] = fresh.reasons.get(reason, 0) + number
        return fresh

    def _measure(self, fresh: Stretch, now: tuple[list[float], float, float, float]) -> None:
        (buckets, *rest), (earlier, *before) = now, self._before
        fresh.buckets = [new - old for new, old in zip(buckets, earlier, strict=True)]
        fresh.took, fresh.waits, fresh.waited = (new - old for new, old in zip(rest, before, strict=True))

    def _grown(self, fresh: Stretch) -> Iterable[Statement]:
        """The row of each length, with what is new; where another begins, old ones are forgotten."""
        now = self._clock.now()
        for step, kept in KEPT.items():
            start = now - now % step
            at, stretch = self._open.get(step, (0.0, Stretch()))
            if at != start:
                stretch = Stretch()
                yield Statement(FORGET, (step, now - kept))
            stretch.add(fresh)
            self._open[step] = (start, stretch)
            body = msgspec.json.encode(stretch).decode()
            yield Statement(PUT, (self._store.chain, step, start, body))


class Range(msgspec.Struct, frozen=True):
    """A time to look back over: rows of `step` seconds, a point per `point`, an agent's use per `slot`."""

    seconds: int
    step: int
    point: int
    slot: int


RANGES = {
    "hour": Range(HOUR, 60, 60, 300),
    "day": Range(DAY, 300, 900, HOUR),
    "week": Range(7 * DAY, HOUR, HOUR, DAY),
    "month": Range(30 * DAY, HOUR, 6 * HOUR, DAY),
}


async def look_back(store: Store, span: Range, now: float, gateway: str | None = None) -> dict[str, Any]:
    """The numbers of this range, of one gateway or of all: points, totals, reasons, agents, and each gateway's share."""
    first = now - now % span.point - span.seconds + span.point
    rows = await store.read(
        "SELECT gateway, at, body FROM trends WHERE step = ? AND at >= ? ORDER BY at", (span.step, first)
    )
    points = [Stretch() for _ in range(span.seconds // span.point)]
    shares: dict[str, Stretch] = {}
    use: dict[str, list[int]] = {}
    for owner, at, body in rows:
        stretch = msgspec.json.decode(body, type=Stretch)
        shares.setdefault(owner, Stretch()).add(stretch)
        place = int((at - first) // span.point)
        if (gateway is None or owner == gateway) and place < len(points):
            points[place].add(stretch)
            slot = int((at - first) // span.slot)
            for agent, (calls, _, _) in stretch.agents.items():
                use.setdefault(agent, [0] * (span.seconds // span.slot))[slot] += calls
    total = Stretch()
    for point in points:
        total.add(point)
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


async def read_failures(store: Store, namespace: str, now: float) -> tuple[list[Failures], list[int]]:
    """Of one source: whose calls failed in the last hour, and how many failed in each of the last 24 hours."""
    hour = await _read_troubles(store, 60, now - HOUR, namespace)
    total = Stretch()
    for _, stretch in hour:
        total.add(stretch)
    found = []
    for key, numbers in total.troubles.items():
        tool, caller = key.split(BETWEEN)
        found.append(Failures(caller, tool, *numbers))
    hours, first = [0] * 24, now - now % HOUR - 23 * HOUR
    for at, stretch in await _read_troubles(store, HOUR, first, namespace):
        hours[int((at - first) // HOUR)] += sum(number for number, _ in stretch.troubles.values())
    return sorted(found, key=lambda one: -one.last), hours


async def _read_troubles(
    store: Store, step: int, since: float, namespace: str
) -> list[tuple[float, Stretch]]:
    """The stretches since then, with the troubles of this namespace alone."""
    rows = await store.read(
        "SELECT at, body FROM trends WHERE step = ? AND at >= ? ORDER BY at", (step, since)
    )
    out = []
    for at, body in rows:
        troubles = msgspec.json.decode(body, type=Stretch).troubles
        mine = {key: numbers for key, numbers in troubles.items() if key.startswith(f"{namespace}:")}
        out.append((at, Stretch(troubles=mine)))
    return out

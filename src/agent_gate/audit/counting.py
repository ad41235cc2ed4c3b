"""The record counted for the trends: calls, failures, time and agents per minute, per five minutes and per hour.

Once a minute, and when somebody looks, the rows that this gateway added to the record since then are counted, each once,
and added up in one row per length of time. So a look back over a month reads hundreds of rows, however many calls there
were, and a call itself costs nothing more.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent_gate.core.ports import Clock
from agent_gate.observe.metrics import Histogram, Metrics
from agent_gate.observe.percentiles import summed
from agent_gate.observe.trends import (
    BETWEEN,
    DAY,
    HOUR,
    RAN,
    Failures,
    GatewayStretch,
    Range,
    Stretch,
    list_failures,
    over_range,
    total_of,
)
from agent_gate.store import Param, Statement, Store

KEPT = {60: 2 * HOUR, 300: 2 * DAY, HOUR: 32 * DAY}
"""For how long a row of so many seconds is kept."""
MOST_READ = 5_000
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


def reason_of(state: str, body: Mapping[str, Any]) -> str:
    """Why a call did not go well: the code of its error, or what people said or did not say."""
    error = body.get("error")
    return str(error.get("code", state)) if isinstance(error, Mapping) else state


def sums(histogram: Histogram) -> tuple[float, float]:
    """How many durations a histogram has, and their sum."""
    rows = histogram.values.values()
    return sum(sum(row[:-1]) for row in rows), sum(row[-1] for row in rows)


class Trends:
    """Counts what this gateway did, keeps it by time, and looks back over what all of them kept."""

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
            fresh.because(reason_of(state, body), number)
            if state in RAN:
                fresh.trouble(f"{tool}{BETWEEN}{caller}", number, at)
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

    async def look_back(self, span: Range, gateway: str | None = None) -> dict[str, Any]:
        """The numbers of this range up to now, of one gateway or of all."""
        first = span.first(self._clock.now())
        return over_range(span, first, await self._read_fresh(span.step, first), gateway)

    async def read_failures(self, namespace: str) -> tuple[list[Failures], list[int]]:
        """Of one source: whose calls failed in the last hour, and how many failed in each of the last 24 hours."""
        now, hours = self._clock.now(), [0] * 24
        first = now - now % HOUR - 23 * HOUR
        last_hour = [of_namespace(one, namespace) for _, _, one in await self._read_fresh(60, now - HOUR)]
        for _, at, stretch in await self._read(HOUR, first):
            mine = of_namespace(stretch, namespace).troubles.values()
            hours[int((at - first) // HOUR)] += sum(number for number, _ in mine)
        return list_failures(total_of(last_hour)), hours

    async def _read_fresh(self, step: int, since: float) -> list[GatewayStretch]:
        await self._store.flush()
        await self.note()
        return await self._read(step, since)

    async def _read(self, step: int, since: float) -> list[GatewayStretch]:
        rows = await self._store.read(
            "SELECT gateway, at, body FROM trends WHERE step = ? AND at >= ? ORDER BY at", (step, since)
        )
        return [(owner, at, msgspec.json.decode(body, type=Stretch)) for owner, at, body in rows]


def of_namespace(stretch: Stretch, namespace: str) -> Stretch:
    """The troubles of this namespace alone."""
    mine = {key: numbers for key, numbers in stretch.troubles.items() if key.startswith(f"{namespace}:")}
    return Stretch(troubles=mine)

"""Looking back through a long record, a stretch at a time.

A text that stands in few rows, or in none, is found by reading all of them. So a search reads the rows of one stretch of
time, then those of the stretch before it: nobody else who reads waits for longer than a stretch takes, and a search whose
time is up says how far back it came, where the next one goes on.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from agent_gate.errors import InvalidArgs
from agent_gate.store import Param, Store
from agent_gate.store.statement import Record

SHORTEST, LONGEST = 2_000, 16_000
"""Rows in the first stretch, and in the longest."""
Clause = tuple[str, tuple[Param, ...]]
RecordPlace = tuple[float, str, int]
Read = Callable[[list[Clause], int], Awaitable[list[Record]]]
"""Reads at most so many of the rows within these bounds, newest first."""
HasTime = Callable[[], bool]
"""Whether there is time for another stretch."""


class Period(NamedTuple):
    """The time that is looked at: from `since` up to, and without, `until`, or the rows older than `after`."""

    since: float | None
    until: float | None
    after: RecordPlace | None

    @property
    def start(self) -> list[Clause]:
        if self.after is not None and not self.after[1]:
            return [("at < ?", (self.after[0],))]
        if self.after is not None:
            # The plain comparison is implied, and lets the index on `at` be used.
            return [("at <= ?", (self.after[0],)), ("(at, chain, seq) < (?, ?, ?)", self.after)]
        return [("at < ?", (self.until,))] if self.until is not None else []


class Looked(NamedTuple):
    """What was found, and how far back was looked where the time did not suffice."""

    rows: list[Record]
    back_to: float | None


def always() -> bool:
    return True


async def look_back(store: Store, read: Read, period: Period, limit: int, has_time: HasTime) -> Looked:
    """The newest rows of a period, as many as asked for, or as many as there is time to look for."""
    found: list[Record] = []
    size, bounds = SHORTEST, period.start
    while True:
        begins = await _find_begin(store, bounds, size, period.since)
        stretch = bounds if begins is None else [*bounds, ("at >= ?", (begins,))]
        found += await read(stretch, limit - len(found))
        if begins is None or len(found) >= limit:
            return Looked(found, None)
        if not has_time():
            return Looked(found, begins)
        size, bounds = min(size * 4, LONGEST), [("at < ?", (begins,))]


async def _find_begin(store: Store, bounds: list[Clause], size: int, since: float | None) -> float | None:
    """When a stretch of so many rows begins; None where it is the last."""
    first = bounds[:1]  # the plain bound on `at`
    where = " AND ".join(["1 = 1", *(sql for sql, _ in first)])
    params = tuple(value for _, values in first for value in values)
    sql = f"SELECT at FROM record WHERE {where} ORDER BY at DESC LIMIT 1 OFFSET ?"
    rows = await store.read(sql, (*params, size))
    return rows[0][0] if rows and (since is None or rows[0][0] > since) else None


def cursor_at(place: RecordPlace) -> str:
    return msgspec.json.encode(place).hex()


def cursor_before(at: float) -> str:
    """All that is older than `at`: a place in no chain."""
    return cursor_at((at, "", 0))


def place_of(cursor: str) -> RecordPlace:
    try:
        at, chain, seq = msgspec.json.decode(bytes.fromhex(cursor), type=RecordPlace)
    except ValueError:
        raise InvalidArgs("This is no cursor of the record. Start again without one.") from None
    return at, chain, seq

"""Reading the record: the latest rows, one call's story, a page for the operator, a whole export."""

import csv
import io
import re
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Literal

import msgspec

from agent_gate.audit.looking import (
    Clause,
    HasTime,
    Period,
    always,
    cursor_at,
    cursor_before,
    look_back,
    place_of,
)
from agent_gate.audit.record import COLUMNS, SELECT, Row
from agent_gate.store import Param, Store
from agent_gate.store.statement import Record

PAGE = 500
MAX_LIMIT = 1000
RECENT = 20_000
ENDING = re.compile(r"[0-9a-f]{6,31}")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
Format = Literal["jsonl", "csv"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What rows to show. `since` is inclusive, `until` exclusive; `text` is searched in tool and body."""

    caller: str | None = None
    tool: str | None = None
    state: str | None = None
    since: float | None = None
    until: float | None = None
    text: str | None = None

    def clauses(self) -> list[Clause]:
        """The SQL conditions with their parameters."""
        found: list[Clause] = [
            (f"{column} = ?", (value,))
            for column in ("caller", "tool", "state")
            if (value := getattr(self, column)) is not None
        ]
        if self.since is not None:
            found.append(("at >= ?", (self.since,)))
        if self.until is not None:
            found.append(("at < ?", (self.until,)))
        if self.text:
            like = r"LIKE lower(?) ESCAPE '\'"
            pattern = f"%{escape_like(self.text)}%"
            found.append((f"(lower(tool) {like} OR lower(body) {like})", (pattern, pattern)))
        return found


ALL = Filters()


def escape_like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


class RecordPage(msgspec.Struct, frozen=True):
    """Rows, newest first, and the `cursor` that gives the page after them; None at the end.

    `back_to` is set where the time did not suffice: rows that fit may be older than that, and the cursor goes on there."""

    rows: list[Row]
    cursor: str | None
    back_to: float | None = None


def cursor_of(row: Row) -> str:
    return cursor_at((row.at, row.chain, row.seq))


async def _select(
    store: Store, filters: Filters, limit: int, bounds: list[Clause], *, newest_first: bool
) -> list[Record]:
    clauses = [*filters.clauses(), *bounds]
    order = "DESC" if newest_first else "ASC"
    where = " AND ".join(["1 = 1", *(sql for sql, _ in clauses)])
    params = tuple(value for _, values in clauses for value in values)
    ordering = f"ORDER BY at {order}, chain {order}, seq {order} LIMIT ?"
    return await store.read(f"{SELECT} WHERE {where} {ordering}", (*params, limit))


async def search(
    store: Store,
    filters: Filters = ALL,
    *,
    limit: int = 50,
    cursor: str | None = None,
    has_time: HasTime = always,
) -> RecordPage:
    """One page of the rows that fit, newest first; or what of it is found while there is time."""
    limit = max(1, min(limit, MAX_LIMIT))

    def read(bounds: list[Clause], most: int) -> Awaitable[list[Record]]:
        return _select(store, filters, most, bounds, newest_first=True)

    period = Period(filters.since, filters.until, place_of(cursor) if cursor else None)
    found, back_to = await look_back(store, read, period, limit + 1, has_time)
    rows = [Row(*values) for values in found[:limit]]
    if len(found) > limit:
        return RecordPage(rows, cursor_of(rows[-1]))
    return RecordPage(rows, cursor_before(back_to) if back_to is not None else None, back_to)


async def show(store: Store, call_id: str) -> list[Row]:
    """All rows of one call, in the order of its story; the last characters of a recent id are enough."""
    rows = await store.read(f"{SELECT} WHERE call = ? ORDER BY step", (call_id,))
    if not rows and ENDING.fullmatch(call_id):
        recent = f"SELECT call FROM record ORDER BY at DESC LIMIT {RECENT}"
        found = await store.read(
            f"SELECT DISTINCT call FROM ({recent}) AS recent WHERE call LIKE ?", (f"%{call_id}",)
        )
        if len(found) == 1:
            return await show(store, found[0][0])
    return [Row(*values) for values in rows]


async def export(
    store: Store,
    format: Format = "jsonl",  # noqa: A002 - the word a user writes
) -> AsyncIterator[str]:
    """Every row, oldest first, as text in portions."""
    if format == "csv":
        yield csv_lines([tuple(COLUMNS.split(", "))])
    bounds: list[Clause] = []
    while found := await _select(store, ALL, PAGE, bounds, newest_first=False):
        rows = [Row(*values) for values in found]
        yield as_csv(rows) if format == "csv" else as_jsonl(rows)
        last = rows[-1]
        # The plain comparison is implied, and lets the index on `at` be used.
        bounds = [("at >= ? AND (at, chain, seq) > (?, ?, ?)", (last.at, last.at, last.chain, last.seq))]


def as_jsonl(rows: list[Row]) -> str:
    lines = ({**msgspec.structs.asdict(row), "body": msgspec.Raw(row.body.encode())} for row in rows)
    return msgspec.json.Encoder().encode_lines(lines).decode()


def as_csv(rows: list[Row]) -> str:
    return csv_lines([tuple(harmless(value) for value in msgspec.structs.astuple(row)) for row in rows])


def harmless(value: Param) -> Param:
    """A text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def csv_lines(rows: list[tuple[Param, ...]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()

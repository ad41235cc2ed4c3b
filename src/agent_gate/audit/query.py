"""Reading the record: the latest rows, one call's story, a page for the operator, a whole export."""

import csv
import io
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from agent_gate.audit.record import COLUMNS, SELECT, Row
from agent_gate.errors import InvalidArgs
from agent_gate.store import Param, Store

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
    call: str | None = None
    chain: str | None = None
    since: float | None = None
    until: float | None = None
    text: str | None = None

    def clauses(self) -> list[tuple[str, tuple[Param, ...]]]:
        """The SQL conditions with their parameters."""
        found: list[tuple[str, tuple[Param, ...]]] = [
            (f"{column} = ?", (value,))
            for column in ("caller", "tool", "state", "call", "chain")
            if (value := getattr(self, column)) is not None
        ]
        if self.since is not None:
            found.append(("at >= ?", (self.since,)))
        if self.until is not None:
            found.append(("at < ?", (self.until,)))
        if self.text:
            like = r"LIKE lower(?) ESCAPE '\'"
            pattern = f"%{_escaped(self.text)}%"
            found.append((f"(lower(tool) {like} OR lower(body) {like})", (pattern, pattern)))
        return found


ALL = Filters()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


class RecordPage(msgspec.Struct, frozen=True):
    """Rows, newest first, and the `cursor` that gives the page after them; None at the end."""

    rows: list[Row]
    cursor: str | None


Place = tuple[float, str, int]


def _cursor(row: Row) -> str:
    return msgspec.json.encode((row.at, row.chain, row.seq)).hex()


def _place(cursor: str) -> Place:
    try:
        at, chain, seq = msgspec.json.decode(bytes.fromhex(cursor), type=Place)
    except ValueError:
        raise InvalidArgs("This is no cursor of the record. Start again without one.") from None
    return at, chain, seq


async def _select(
    store: Store, filters: Filters, limit: int, *, after: Place | None, newest_first: bool
) -> list[Row]:
    clauses = filters.clauses()
    sign, order = ("<", "DESC") if newest_first else (">", "ASC")
    if after is not None:
        # The plain comparison is implied, and lets the index on `at` be used.
        clauses.append((f"at {sign}= ? AND (at, chain, seq) {sign} (?, ?, ?)", (after[0], *after)))
    where = " AND ".join(["1 = 1", *(sql for sql, _ in clauses)])
    params = tuple(value for _, values in clauses for value in values)
    ordering = f"ORDER BY at {order}, chain {order}, seq {order} LIMIT ?"
    found = await store.read(f"{SELECT} WHERE {where} {ordering}", (*params, limit))
    return [Row(*values) for values in found]


async def search(
    store: Store, filters: Filters = ALL, *, limit: int = 50, cursor: str | None = None
) -> RecordPage:
    """One page of the rows that fit, newest first."""
    limit = max(1, min(limit, MAX_LIMIT))
    after = _place(cursor) if cursor else None
    rows = await _select(store, filters, limit + 1, after=after, newest_first=True)
    more = len(rows) > limit
    return RecordPage(rows[:limit], _cursor(rows[limit - 1]) if more else None)


async def tail(store: Store, n: int = 20, filters: Filters = ALL) -> list[Row]:
    """The latest `n` rows that fit, oldest first."""
    return (await search(store, filters, limit=n)).rows[::-1]


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
    since: float | None = None,
    until: float | None = None,
    filters: Filters = ALL,
) -> AsyncIterator[str]:
    """The rows from `since` to before `until`, oldest first, as text in portions."""
    filters = replace(filters, since=since, until=until)
    if format == "csv":
        yield _csv_lines([tuple(COLUMNS.split(", "))])
    after: Place | None = None
    while rows := await _select(store, filters, PAGE, after=after, newest_first=False):
        yield as_csv(rows) if format == "csv" else as_jsonl(rows)
        after = (rows[-1].at, rows[-1].chain, rows[-1].seq)


def as_jsonl(rows: list[Row]) -> str:
    lines = ({**msgspec.structs.asdict(row), "body": msgspec.Raw(row.body.encode())} for row in rows)
    return msgspec.json.Encoder().encode_lines(lines).decode()


def as_csv(rows: list[Row]) -> str:
    return _csv_lines([tuple(_harmless(value) for value in msgspec.structs.astuple(row)) for row in rows])


def _harmless(value: Param) -> Param:
    """A text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _csv_lines(rows: list[tuple[Param, ...]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()

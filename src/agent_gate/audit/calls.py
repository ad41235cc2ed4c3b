"""Whole calls of the record, newest first: a call is found by any of its rows, and listed once, by its first."""

from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass

from agent_gate.audit.looking import Clause, HasTime, Period, always, cursor_before, look_back, place_of
from agent_gate.audit.query import MAX_LIMIT, cursor_of, escape_like
from agent_gate.audit.record import COLUMNS, SELECT, Row
from agent_gate.store import Param, Store
from agent_gate.store.statement import Record

LISTED = ", ".join(f"r.{name}" for name in COLUMNS.split(", "))
FIRST = "NOT EXISTS (SELECT 1 FROM record e WHERE e.call = r.call AND e.step < r.step)"
LAST_STATE = (
    "EXISTS (SELECT 1 FROM record s WHERE s.call = r.call AND s.state = ? "
    "AND NOT EXISTS (SELECT 1 FROM record l WHERE l.call = s.call AND l.step > s.step))"
)
# A call with a single row says in its body how long it took; whoever folds it looks again.
LONGER = (
    "((SELECT max(s.at) FROM record s WHERE s.call = r.call) - r.at >= ? "
    "OR NOT EXISTS (SELECT 1 FROM record s WHERE s.call = r.call AND s.step > r.step))"
)
LIKE = r"LIKE lower(?) ESCAPE '\'"
WORDS = f"(lower(r.tool) {LIKE} OR EXISTS (SELECT 1 FROM record s WHERE s.call = r.call AND lower(s.body) {LIKE}))"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFilters:
    """Which calls to show. `state` is the one a call is in now; `text` stands in any of its rows; `since` is inclusive,
    `until` exclusive; `longer` is in seconds."""

    caller: str | None = None
    tool: str | None = None
    namespace: str | None = None
    state: str | None = None
    since: float | None = None
    until: float | None = None
    longer: float | None = None
    text: str | None = None

    def clauses(self) -> list[Clause]:
        """The SQL conditions with their parameters."""
        given: list[tuple[str, Param | None]] = [
            ("r.caller = ?", self.caller),
            ("r.tool = ?", self.tool),
            (LAST_STATE, self.state),
            ("r.at >= ?", self.since),
            ("r.at < ?", self.until),
            (LONGER, self.longer),
        ]
        found: list[Clause] = [(sql, (value,)) for sql, value in given if value is not None]
        if self.namespace:
            found.append((r"r.tool LIKE ? ESCAPE '\'", (f"{escape_like(self.namespace)}:%",)))
        for word in (self.text or "").split():
            pattern = f"%{escape_like(word)}%"
            found.append((WORDS, (pattern, pattern)))
        return found


@dataclass(frozen=True, slots=True)
class CallsPage:
    """The rows of some calls, call by call, and the `cursor` that gives the calls after them; None at the end.

    `back_to` is set where the time did not suffice, as in a `RecordPage`."""

    calls: list[list[Row]]
    cursor: str | None
    back_to: float | None = None


async def search_calls(
    store: Store,
    filters: CallFilters,
    *,
    limit: int = 50,
    cursor: str | None = None,
    has_time: HasTime = always,
) -> CallsPage:
    """One page of the calls that fit, by when they began, newest first; or what of it is found while there is time."""
    limit = max(1, min(limit, MAX_LIMIT))

    def read(bounds: list[Clause], most: int) -> Awaitable[list[Record]]:
        return _read_firsts(store, [(FIRST, ()), *filters.clauses(), *bounds], most)

    period = Period(filters.since, filters.until, place_of(cursor) if cursor else None)
    found, back_to = await look_back(store, read, period, limit + 1, has_time)
    firsts = [Row(*values) for values in found[:limit]]
    calls = await _read_whole(store, firsts)
    if len(found) > limit:
        return CallsPage(calls, cursor_of(firsts[-1]))
    return CallsPage(calls, cursor_before(back_to) if back_to is not None else None, back_to)


def _read_firsts(store: Store, clauses: list[Clause], limit: int) -> Awaitable[list[Record]]:
    where = " AND ".join(sql for sql, _ in clauses)
    params = tuple(value for _, values in clauses for value in values)
    order = "ORDER BY r.at DESC, r.chain DESC, r.seq DESC LIMIT ?"
    return store.read(f"SELECT {LISTED} FROM record r WHERE {where} {order}", (*params, limit))


async def _read_whole(store: Store, firsts: list[Row]) -> list[list[Row]]:
    """All rows of these calls, in the order of each call's story."""
    if not firsts:
        return []
    marks = ", ".join("?" * len(firsts))
    rows = await store.read(
        f"{SELECT} WHERE call IN ({marks}) ORDER BY step", tuple(row.call for row in firsts)
    )
    calls: dict[str, list[Row]] = {row.call: [] for row in firsts}
    for values in rows:
        calls[values[0]].append(Row(*values))
    return list(calls.values())


async def export_calls(store: Store, filters: CallFilters, most: int) -> AsyncIterator[list[list[Row]]]:
    """All calls that fit, up to `most`, in portions."""
    cursor: str | None = None
    while most > 0:
        page = await search_calls(store, filters, limit=min(500, most), cursor=cursor)
        if page.calls:
            yield page.calls
        most, cursor = most - len(page.calls), page.cursor
        if cursor is None:
            return

"""Whole calls, found by any of their rows and listed by when they began."""

import pytest
from tests.rows import AT, opened

from agent_gate.audit import row
from agent_gate.audit.calls import CallFilters, export_calls, search_calls
from agent_gate.core.call import State
from agent_gate.store import Store, StoreSettings

CALLS = 12


async def fill(store: Store) -> None:
    """Each call begins a second after the one before; every third waits for a person, every fourth fails after 5 s."""
    for n in range(CALLS):
        call, caller, tool = f"c{n:02d}", f"agent{n % 2}", ("git:push", "mail:send")[n % 2]
        first = {"arguments": {"n": n, "note": "50%_off"}, "wire": tool.replace(":", "__")}
        if n % 3 == 0:
            store.post(row(call, State.PENDING, AT + n, caller, tool, first))
        else:
            store.post(row(call, State.DISPATCHING, AT + n, caller, tool, first))
            ended = (State.FAILED, AT + n + 5) if n % 4 == 0 else (State.COMPLETED, AT + n + 0.1)
            error = {"error": {"code": "UPSTREAM_ERROR", "message": "disk full"}} if n % 4 == 0 else {}
            store.post(row(call, ended[0], ended[1], caller, tool, error))
    await store.flush()


async def found(store: Store, filters: CallFilters) -> list[int]:
    page = await search_calls(store, filters)
    return [int(rows[0].call[1:]) for rows in page.calls]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (CallFilters(), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
        (CallFilters(state="pending"), [9, 6, 3, 0]),
        (CallFilters(state="dispatching"), []),
        (CallFilters(state="failed", text="50%_OFF"), [8, 4]),
        (CallFilters(text="DISK 50%"), [8, 4]),
        (CallFilters(caller="agent1", namespace="mail", state="completed"), [11, 7, 5, 1]),
        (CallFilters(tool="git:push", since=AT + 6, until=AT + 10), [8, 6]),
        (CallFilters(longer=1.0, state="failed"), [8, 4]),
        (CallFilters(text="nothing_like_it"), []),
    ],
    ids=["all", "waiting", "running", "failed", "words", "mail", "between", "long", "none"],
)
async def test_calls_are_found_by_any_of_their_rows(
    settings: StoreSettings, filters: CallFilters, expected: list[int]
) -> None:
    async with opened(settings) as store:
        await fill(store)
        assert await found(store, filters) == expected


async def test_pages_have_each_call_whole_and_once(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await fill(store)
        seen, cursor = [], None
        while True:
            page = await search_calls(store, CallFilters(), limit=5, cursor=cursor)
            seen += page.calls
            cursor = page.cursor
            if cursor is None:
                break
        assert [rows[0].call for rows in seen] == [f"c{n:02d}" for n in reversed(range(CALLS))]
        assert all(len(rows) == (1 if int(rows[0].call[1:]) % 3 == 0 else 2) for rows in seen)
        portions = [calls async for calls in export_calls(store, CallFilters(state="pending"), 3)]
        assert sum(map(len, portions)) == 3

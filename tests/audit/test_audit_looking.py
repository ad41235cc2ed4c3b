"""Looking back through a long record: in stretches, within seconds, and without holding others up."""

import asyncio

import pytest
from tests.rows import AT, opened

from agent_gate.audit import Filters, looking, row, search, show
from agent_gate.audit.calls import CallFilters, search_calls
from agent_gate.audit.looking import HasTime, always
from agent_gate.core.call import State
from agent_gate.store import Store, StoreSettings

CHOICES = (
    Filters(),
    Filters(caller="agent1"),
    Filters(text="nine"),
    Filters(text="nowhere to be found"),
    Filters(since=AT + 5, until=AT + 12),
    Filters(since=AT + 5, text="nine"),
)


def never() -> bool:
    return False


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stretches of few rows, so that few rows have many."""
    monkeypatch.setattr(looking, "SHORTEST", 2)
    monkeypatch.setattr(looking, "LONGEST", 7)


async def fill(store: Store, rows: int) -> None:
    for i in range(rows):
        # Four rows share each moment, so that a stretch may begin between them.
        note = {"note": "nine" if i % 9 == 0 else "other"}
        store.post(row(f"c{i:05d}", State.COMPLETED, AT + i // 4, f"agent{i % 3}", "git:push", note))
    await store.flush()


async def all_pages(store: Store, filters: Filters, has_time: HasTime) -> tuple[list[str], int]:
    """The calls of all pages, and how many pages did not get to their end in time."""
    found, early, cursor = [], 0, None
    while True:
        page = await search(store, filters, limit=3, cursor=cursor, has_time=has_time)
        found += [one.call for one in page.rows]
        early += page.back_to is not None
        cursor = page.cursor
        if cursor is None:
            assert page.back_to is None
            return found, early


def expected(filters: Filters, rows: int) -> list[str]:
    def fits(i: int) -> bool:
        at = AT + i // 4
        return (
            filters.caller in (None, f"agent{i % 3}")
            and (filters.text is None or (filters.text == "nine" and i % 9 == 0))
            and (filters.since is None or at >= filters.since)
            and (filters.until is None or at < filters.until)
        )

    return [f"c{i:05d}" for i in reversed(range(rows)) if fits(i)]


async def test_every_row_is_found_once_however_little_time_each_search_has(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await fill(store, 70)
        for filters in CHOICES:
            assert await all_pages(store, filters, always) == (expected(filters, 70), 0)
            assert (await all_pages(store, filters, never))[0] == expected(filters, 70)
        assert (await all_pages(store, Filters(text="nowhere to be found"), never))[1] > 5


async def test_a_search_whose_time_is_up_says_how_far_back_it_came(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await fill(store, 70)
        page = await search(store, Filters(text="nowhere to be found"), has_time=never)
        assert (page.rows, page.back_to) == ([], AT + 16)
        assert page.cursor is not None
        on = await search(store, Filters(text="nowhere to be found"), cursor=page.cursor, has_time=never)
        assert on.back_to is not None
        assert on.back_to < AT + 16


async def test_whole_calls_are_looked_for_in_the_same_way(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await fill(store, 70)
        found, cursor, early = [], None, 0
        while True:
            filters = CallFilters(text="nine", caller="agent0")
            page = await search_calls(store, filters, limit=3, cursor=cursor, has_time=never)
            found += [rows[0].call for rows in page.calls]
            early += page.back_to is not None
            if (cursor := page.cursor) is None:
                break
        assert found == [f"c{i:05d}" for i in reversed(range(0, 70, 9)) if i % 3 == 0]
        assert early


async def test_two_searches_for_what_is_nowhere_hold_nobody_up(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await fill(store, 2_000)
        missing = Filters(text="nowhere to be found")
        searches = [asyncio.ensure_future(search(store, missing)) for _ in range(2)]
        await asyncio.sleep(0)
        assert await show(store, "c00001")
        assert not any(one.done() for one in searches)
        assert all(page.rows == [] for page in await asyncio.gather(*searches))

"""Reading the record: pages, filters and exports."""

import csv
import io
import json
import time

import pytest
from tests.rows import AT, opened

from agent_gate.audit import Filters, export, row, search
from agent_gate.audit.query import Format
from agent_gate.core.call import State
from agent_gate.errors import InvalidArgs
from agent_gate.store import Store, StoreSettings

TOOLS = ("git:push", "git:pull", "=cmd()")


async def _fill(store: Store, rows: int) -> None:
    for i in range(rows):
        state = State.FAILED if i % 10 == 0 else State.COMPLETED
        # Three rows share each moment, so that a page may end between them.
        store.post(
            row(f"c{i:05d}", state, AT + i // 3, f"agent{i % 2}", TOOLS[i % 3], {"i": i, "note": "50%_Ä"})
        )
    await store.flush()


async def test_a_page_has_the_latest_rows_newest_first(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        assert (await search(store, Filters())).rows == []
        await _fill(store, 40)
        assert [r.call for r in (await search(store, Filters(), limit=2)).rows] == ["c00039", "c00038"]
        found = await search(store, Filters(caller="agent0", tool="git:push"), limit=2)
        assert [r.call for r in found.rows] == ["c00036", "c00030"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(state="failed"), [0, 10, 20]),
        (Filters(since=AT + 9), [27, 28, 29]),
        (Filters(until=AT + 1), [0, 1, 2]),
        (Filters(since=AT + 1, until=AT + 2, caller="agent0"), [4]),
        (Filters(text='"I":12,'), [12]),
        (Filters(text="CMD", until=AT + 2), [2, 5]),
        (Filters(text="50%_Ä", until=AT + 1), [0, 1, 2]),
        (Filters(text="5%_"), []),
    ],
)
async def test_filters_choose_rows(settings: StoreSettings, filters: Filters, expected: list[int]) -> None:
    async with opened(settings) as store:
        await _fill(store, 30)
        page = await search(store, filters)
        assert sorted(int(r.call[1:]) for r in page.rows) == expected
        assert page.cursor is None


async def test_pages_follow_each_other_without_gap_or_overlap(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await _fill(store, 50)
        seen: list[str] = []
        cursor = None
        for _ in range(8):
            page = await search(store, Filters(caller="agent1"), limit=4, cursor=cursor)
            seen += [r.call for r in page.rows]
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == sorted(seen, reverse=True)
        assert len(seen) == len(set(seen)) == 25


@pytest.mark.parametrize("cursor", ["x", "00", "7b7d", "5b312c322c335d"])
async def test_a_made_up_cursor_is_refused(settings: StoreSettings, cursor: str) -> None:
    async with opened(settings) as store:
        with pytest.raises(InvalidArgs, match="no cursor of the record"):
            await search(store, cursor=cursor)


async def test_a_page_of_a_long_record_comes_fast(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await _fill(store, 12_000)
        started = time.process_time()
        page = await search(store, limit=100)
        page = await search(store, Filters(tool="git:pull"), limit=100, cursor=page.cursor)
        page = await search(store, Filters(text='"i":11,'), limit=100)
        assert [r.call for r in page.rows] == ["c00011"]
        assert time.process_time() - started < 1


async def _collect(store: Store, kind: Format = "jsonl") -> str:
    return "".join([part async for part in export(store, kind)])


async def test_an_export_as_lines_of_json_has_every_row_once(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await _fill(store, 1300)
        lines = [json.loads(line) for line in (await _collect(store)).splitlines()]
        assert sorted(line["seq"] for line in lines) == list(range(1, 1301))
        assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
        assert lines[7]["body"] == {"i": lines[7]["seq"] - 1, "note": "50%_Ä"}


async def test_an_export_as_csv_cannot_run_formulas(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await _fill(store, 6)
        rows = list(csv.DictReader(io.StringIO(await _collect(store, "csv"))))
        assert len(rows) == 6
        assert {r["tool"] for r in rows} == {"git:push", "git:pull", "'=cmd()"}
        assert json.loads(rows[0]["body"])["note"] == "50%_Ä"

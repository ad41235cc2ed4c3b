"""Old rows are cut from the beginning of the record on purpose, and what is left still proves that it is whole."""

import asyncio
from importlib import import_module
from pathlib import Path

import pytest
from tests.rows import AT, opened, step

from agent_gate.approval.forgetting import forget_questions
from agent_gate.audit import Cutter, Heads, Sealer, VerifyReport, verify
from agent_gate.audit.cut import CUT_CALL, STEP
from agent_gate.core.call import State
from agent_gate.core.ports import SystemClock
from agent_gate.store import Statement, Store, StoreSettings

CALLS = 30
BY = "anna"


async def run_calls(store: Store, first: int, last: int) -> None:
    """Calls a second apart from each other: `dispatching`, then `completed`."""
    for number in range(first, last):
        await store.write(step(f"c{number}", at=AT + number))
        await store.write(step(f"c{number}", State.COMPLETED, at=AT + number + 0.5))


async def filled(store: Store, key: bytes) -> None:
    async with Sealer(store, key, every=10):
        await run_calls(store, 0, CALLS)


async def cut(store: Store, key: bytes, seconds: float, heads: Heads | None = None) -> int:
    return await Cutter(store, key, SystemClock(), heads).cut(AT + seconds, BY)


async def left(store: Store) -> list[str]:
    found = await store.read("SELECT DISTINCT call FROM record WHERE tool <> ? ORDER BY call", (CUT_CALL,))
    return [call for (call,) in found]


async def test_what_is_left_verifies_and_says_from_where_and_by_whom(
    settings: StoreSettings, key: bytes
) -> None:
    async with opened(settings) as store:
        await filled(store, key)
        assert await cut(store, key, 10) == 20
        report = await verify(store, key)
        assert report.ok
        assert [(one.chain, one.seq, one.made_by) for one in report.cuts] == [("home", 20, BY)]
        assert await left(store) == sorted(f"c{number}" for number in range(10, CALLS))
        assert await cut(store, key, 10) == 0
        await cut(store, key, 12)
        again = await verify(store, key)
        assert again.ok
        assert [one.seq for one in again.cuts] == [24]


async def test_a_cut_is_on_record_itself_and_the_chain_goes_on(settings: StoreSettings, key: bytes) -> None:
    async with opened(settings) as store:
        await filled(store, key)
        await cut(store, key, 10)
        [(caller, body)] = await store.read("SELECT caller, body FROM record WHERE tool = ?", (CUT_CALL,))
        assert caller == BY
        assert '"rows":20,"until"' in body
        assert '"up_to":20' in body
    async with opened(settings) as store:
        await run_calls(store, CALLS, CALLS + 3)
        assert (await verify(store, key)).ok


@pytest.mark.parametrize("state", [State.PENDING, State.APPROVED, State.DISPATCHING])
async def test_a_call_that_has_not_ended_stays_with_all_that_follow(
    settings: StoreSettings, key: bytes, state: State
) -> None:
    async with opened(settings) as store:
        async with Sealer(store, key, every=10):
            await run_calls(store, 0, 5)
            await store.write(step("open", state, at=AT + 5))
            await run_calls(store, 6, CALLS)
        await cut(store, key, 1000)
        assert await left(store) == sorted(["open", *(f"c{number}" for number in range(6, CALLS))])
        assert (await verify(store, key)).ok


async def test_a_call_that_ended_later_is_not_cut_in_two(settings: StoreSettings, key: bytes) -> None:
    async with opened(settings) as store:
        async with Sealer(store, key, every=10):
            await run_calls(store, 0, 5)
            await store.write(step("long", at=AT + 5))
            await run_calls(store, 6, 20)
            await store.write(step("long", State.COMPLETED, at=AT + 500))
        await cut(store, key, 100)
        assert "long" in await left(store)
        assert len(await store.read("SELECT step FROM record WHERE call = 'long'")) == 2
        assert "c4" not in await left(store)


async def test_the_last_row_that_was_sealed_and_noted_stays(
    settings: StoreSettings, key: bytes, tmp_path: Path
) -> None:
    async with opened(settings) as store:
        heads = Heads(tmp_path / "audit.head", key)
        async with Sealer(store, key, every=10, heads=heads):
            await run_calls(store, 0, CALLS)
        await run_calls(store, CALLS, CALLS + 5)
        await cut(store, key, 1e6, heads)
        assert await store.read("SELECT min(seq) FROM record") == [(2 * CALLS,)]
        assert (await verify(store, key, Heads(tmp_path / "audit.head", key))).ok


async def test_more_rows_than_go_with_one_commit_leave_one_cut(settings: StoreSettings, key: bytes) -> None:
    async with opened(settings) as store:
        async with Sealer(store, key):
            rows = [step(f"c{number}", State.COMPLETED, at=AT) for number in range(STEP * 2 + 100)]
            await asyncio.gather(*(store.write(one) for one in rows))
        assert await cut(store, key, 1) == STEP * 2 + 99
        assert await store.read("SELECT count(*) FROM cuts") == [(1,)]
        assert (await verify(store, key)).ok


async def tampered(settings: StoreSettings, key: bytes, sql: str) -> VerifyReport:
    async with opened(settings) as store:
        await filled(store, key)
        await cut(store, key, 10)
        await store.write(Statement(sql))
        return await verify(store, key)


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("DELETE FROM record WHERE seq <= 22", "rows 21 to 22 were removed"),
        ("DELETE FROM cuts", "rows 1 to 20 were removed"),
        ("UPDATE cuts SET made_by = 'nobody'", "the cut up to row 20 was not made with this key"),
        ("UPDATE cuts SET seq = 22", "the cut up to row 22 was not made with this key"),
        ("UPDATE record SET body = '[]' WHERE seq = 21", "row 21 was changed or moved"),
        ("UPDATE record SET seq = 3 WHERE seq = 21", "row 3 was added before the cut"),
    ],
    ids=[
        "more rows gone",
        "cut gone",
        "maker changed",
        "place changed",
        "first row changed",
        "row put before",
    ],
)
async def test_what_is_done_to_a_cut_record_is_named(
    settings: StoreSettings, key: bytes, sql: str, named: str
) -> None:
    assert named in " ".join(problem.text for problem in (await tampered(settings, key, sql)).problems)


async def test_rows_that_are_cut_while_the_record_is_verified_are_not_missed(
    settings: StoreSettings, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("agent_gate.audit.verify"), "PAGE", 5)
    async with opened(settings) as store:
        await filled(store, key)
        read, pages = store.read, 0

        async def cut_after_the_second_page(sql: str, params: tuple[object, ...] = ()) -> object:
            nonlocal pages
            if "seq > ? ORDER BY seq LIMIT ?" in sql:
                pages += 1
                if pages == 3:
                    await cut(store, key, 15)
            return await read(sql, params)  # type: ignore[arg-type]

        monkeypatch.setattr(store, "read", cut_after_the_second_page)
        report = await verify(store, key)
        assert report.ok
        assert [one.seq for one in report.cuts] == [30]


async def test_questions_go_with_the_calls_that_they_were_about(settings: StoreSettings, key: bytes) -> None:
    columns = "id, call, caller, tool, signature, arguments_hash, definition_hash, state, asked_at, expires_at, body"
    insert = f"INSERT INTO approvals ({columns}) VALUES (?, ?, 'coder', 't', 's', ?, 'd', ?, ?, ?, '{{}}')"
    async with opened(settings) as store:
        await filled(store, key)
        asked = [("old", "c1", "approved"), ("kept", "c20", "denied"), ("open", "gone", "pending")]
        for name, call, state in asked:
            await store.write(Statement(insert, (name, call, name, state, AT, AT + 900)))
        await cut(store, key, 10)
        assert await forget_questions(store, AT + 10) == 1
        found = await store.read("SELECT id FROM approvals ORDER BY id")
        assert found == [("kept",), ("open",)]


async def test_a_cut_goes_on_behind_what_it_took_away(
    settings: StoreSettings, key: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(settings) as store:
        await filled(store, key)
        deleted: list[tuple[object, ...]] = []

        def write(*statements: Statement) -> object:
            deleted.extend(one.params for one in statements if one.sql.startswith("DELETE FROM record"))
            return whole(*statements)

        whole = store.write
        monkeypatch.setattr(import_module("agent_gate.audit.cut"), "STEP", 4)
        monkeypatch.setattr(store, "write", write)
        assert await cut(store, key, 10) == 20
        assert deleted == [("home", first, first + 4) for first in range(0, 20, 4)]

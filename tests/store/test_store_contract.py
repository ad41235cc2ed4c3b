"""What every store promises, on SQLite and on PostgreSQL."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.rows import change, opened, put, step, values
from tests.waiting import until

from agent_gate.audit import ensure_key, verify
from agent_gate.core.call import State
from agent_gate.errors import ConfigError, DependencyUnavailable
from agent_gate.store import Conflict, Head, Statement, StoreSettings, open_store
from agent_gate.store.cohort import QUIET_TURNS
from agent_gate.store.writer import PORTION, TICK, portions, repeated


async def test_a_written_unit_is_readable_and_says_how_many_rows_it_touched(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        assert await store.write(put("a"), change("a", "2"), change("missing", "2")) == [1, 1, 0]
        assert await values(store) == {"a": "2"}


async def test_rows_survive_a_restart_and_the_chain_goes_on_where_it_ended(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await store.write(step("one"))
        before = store.head
    assert before.seq == 1
    async with opened(settings) as store:
        assert store.head == before
        await store.write(step("two"))
        found = await store.read("SELECT call, seq FROM record ORDER BY seq")
        assert found == [("one", 1), ("two", 2)]


async def test_a_taken_key_is_a_conflict_for_the_guilty_unit_only(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await store.write(step("taken"))
        calls = ["a", "b", "taken", "c", "d"]
        outcomes = await asyncio.gather(*(store.write(step(c)) for c in calls), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [list, list, Conflict, list, list]
        found = await store.read("SELECT call, seq FROM record ORDER BY seq")
        assert found == [("taken", 1), ("a", 2), ("b", 3), ("c", 4), ("d", 5)]


async def test_a_missed_expectation_rolls_the_whole_unit_back_and_leaves_no_gap(
    settings: StoreSettings,
) -> None:
    async with opened(settings) as store:
        lost = store.write(step("lost"), put("lost"), change("nobody", "x", expect=1))
        kept = store.write(step("kept"), put("kept"))
        with pytest.raises(Conflict, match="0 rows changed where 1 should have"):
            await lost
        assert await kept == [1, 1]
        assert await values(store) == {"kept": "1"}
        assert await store.read("SELECT call, seq FROM record") == [("kept", 1)]


async def test_of_many_who_compare_and_set_at_once_exactly_one_wins(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await store.write(put("lease", "free"))
        claim = "UPDATE kv SET value = ? WHERE name = 'lease' AND value = 'free'"
        claims = (store.write(Statement(claim, (str(i),), expect=1)) for i in range(20))
        outcomes = await asyncio.gather(*claims, return_exceptions=True)
        assert sum(outcome == [1] for outcome in outcomes) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 19


async def test_a_broken_statement_fails_alone(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        outcomes = await asyncio.gather(
            store.write(put("before")),
            store.write(Statement("INSERT INTO nowhere (x) VALUES (?)", (1,))),
            store.write(step("surrogate", note="x"), put("half \ud800 text")),
            store.write(put("nothing", None)),  # type: ignore[arg-type]
            store.write(Statement("INSERT INTO kv (name, value) VALUES (?, ?)", ("too few",))),
            store.write(put("after")),
            return_exceptions=True,
        )
        failed = [isinstance(outcome, Exception) for outcome in outcomes]
        assert failed == [False, True, True, False, True, False]
        assert set(await values(store)) == {"before", "nothing", "after"}
        assert store.healthy
        assert store.head.seq == 0


async def test_a_posted_unit_is_written_without_anybody_waiting(settings: StoreSettings) -> None:
    async with opened(settings) as store:

        async def written() -> bool:
            return name in await values(store)

        for name in ("while it dozes", "while it sleeps"):
            store.post(put(name))
            await until(written)
            await until(lambda: store._writer._asleep)
            assert await written()


async def test_rows_that_nobody_waits_for_gather_until_the_tick(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        commits: list[float] = []

        def go_on(_head: Head, _rows: Sequence[tuple[Any, ...]]) -> None:
            # On the writer's own thread, so that the row is there when the writer looks for more.
            commits.append(time.monotonic())
            if len(commits) < 4:
                store.post(step(str(len(commits))))

        store.watch(go_on)
        await store.write(step("first"))
        await until(lambda: len(commits) >= 4)
        assert commits[3] - commits[0] >= 2.5 * TICK


async def crowd(store: Any, count: int) -> None:
    """Let many wait for one commit."""
    await asyncio.gather(*(store.write(put(f"{count}-{number}")) for number in range(count)))


async def test_those_who_come_in_neighbouring_turns_share_a_commit(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await crowd(store, 4)
        heads: set[int] = set()
        store.watch(lambda head, _rows: heads.add(head.seq))
        waiting = []
        for name in ("first", "second", "third"):
            waiting.append(asyncio.ensure_future(store.write(step(name))))
            await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        await store.flush()
        assert heads - {0} == {3}


async def test_a_loop_that_never_rests_keeps_nobody_waiting(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await crowd(store, 50)
        waiting = asyncio.ensure_future(store.write(put("waited")))
        cohort, posted = store._writer._cohort, 0
        while not cohort._called:
            store.post(put(f"posted-{posted}"))
            posted += 1
            await asyncio.sleep(0)
        assert posted > QUIET_TURNS or asyncio.get_running_loop().time() >= cohort._until
        assert await waiting == [1]


async def test_posts_and_writes_take_effect_in_the_order_they_were_made(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        store.post(put("a", "posted"))
        store.post(change("a", "changed"))
        assert await store.write(change("a", "written", expect=1)) == [1]
        store.post(change("a", "last"))
        await store.flush()
        assert await values(store) == {"a": "last"}


async def test_closing_writes_what_was_posted(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        for i in range(1200):
            store.post(step(f"call-{i}"))
    async with opened(settings) as store:
        assert await store.read("SELECT count(*) FROM record") == [(1200,)]


async def test_a_post_that_conflicts_is_dropped_and_does_not_stop_the_others(
    settings: StoreSettings, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(settings) as store:
        await store.write(put("a"))
        store.post(put("a", "again"))
        store.post(put("b"))
        await store.flush()
        assert await values(store) == {"a": "1", "b": "1"}
    assert "A row that nobody waited for was not written" in caplog.text


async def test_a_cancelled_waiter_leaves_its_unit_in_the_store(settings: StoreSettings) -> None:
    async with opened(settings) as store:

        async def write() -> None:
            await store.write(put("abandoned"))

        task = asyncio.create_task(write())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await store.flush()
        assert await values(store) == {"abandoned": "1"}


async def test_bytes_numbers_and_nothing_come_back_as_they_went_in(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        body = bytes(range(256)) * 5000
        columns = "handle, call, caller, media_type, size, digest, body, created_at, expires_at"
        sql = f"INSERT INTO artifacts ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        row = ("h", "c", "üñí\n'?%s", "text/plain", 1 << 60, "", body, 1790000000.123457, None)
        await store.write(Statement(sql, row))
        assert await store.read(f"SELECT {columns} FROM artifacts WHERE caller = ?", (row[2],)) == [row]


async def test_placeholders_inside_quotes_and_percent_signs_are_left_alone(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        await store.write(Statement("INSERT INTO kv (name, value) VALUES ('it''s 100%? sure', ?)", ("yes",)))
        found = await store.read(
            "SELECT value FROM kv WHERE name LIKE 'it''s 100%?%' AND value = ?", ("yes",)
        )
        assert found == [("yes",)]


async def test_one_caller_can_have_only_one_open_ask_for_the_same_arguments(settings: StoreSettings) -> None:
    def ask(name: str, state: str) -> Statement:
        columns = "id, call, caller, tool, signature, arguments_hash, definition_hash, state, asked_at, expires_at, body"
        sql = f"INSERT INTO approvals ({columns}) VALUES (?, ?, 'coder', 't', 's', 'a', 'd', ?, 1, 2, '')"
        return Statement(sql, (name, name, state))

    async with opened(settings) as store:
        await store.write(ask("one", "pending"))
        with pytest.raises(Conflict):
            await store.write(ask("two", "pending"))
        await store.write(ask("three", "denied"))


async def test_a_second_gateway_on_the_same_store_is_refused_by_name(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        with pytest.raises(ConfigError, match=r"pid \d+\)\. Stop that one first"):
            open_store(settings)
        await store.write(put("still works"))


async def test_a_closed_store_refuses_and_can_be_closed_twice(settings: StoreSettings) -> None:
    store = open_store(settings)
    await store.close()
    await store.close()
    with pytest.raises(DependencyUnavailable, match="stopping"):
        await store.write(put("late"))
    with pytest.raises(DependencyUnavailable, match="stopping"):
        store.post(put("late"))
    with pytest.raises(DependencyUnavailable, match="stopping"):
        await store.read("SELECT 1")


async def test_a_database_from_a_newer_program_is_refused_and_left_alone(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        sql = "INSERT INTO schema_version (version, name, at) VALUES (9999, 'future', 1)"
        await store.write(Statement(sql))
    for _ in range(2):
        with pytest.raises(ConfigError, match="schema version 9999"):
            open_store(settings)


async def test_listeners_hear_of_each_new_head_and_its_rows(settings: StoreSettings) -> None:
    async with opened(settings) as store:
        heads: list[Head] = []
        added: list[tuple[Any, ...]] = []

        def hear(head: Head, rows: Sequence[tuple[Any, ...]]) -> None:
            heads.append(head)
            added.extend((row[0], row[-2]) for row in rows)

        store.watch(hear)
        await store.write(step("a"))
        store.post(step("b", State.PENDING))
        with pytest.raises(Conflict):
            await store.write(step("a"))
        await store.write(step("c"))
        await store.flush()
        assert heads[0].seq == 1
        assert added == [("a", 1), ("b", 2), ("c", 3)]
        assert store.head.seq == 3


async def test_a_fault_after_a_commit_ends_the_writing_and_takes_nothing_back(
    settings: StoreSettings,
) -> None:
    async with opened(settings) as store:
        store.watch(lambda _head, _rows: 1 // 0)
        store.post(put("posted"))
        await store.write(put("first"))
        for _ in range(2):
            with pytest.raises(DependencyUnavailable, match=r"internal error \(ZeroDivisionError\)"):
                await store.write(put("later"))
        assert not store.healthy
        assert await values(store) == {"posted": "1", "first": "1"}


async def test_a_fault_inside_the_writer_refuses_who_waits(
    settings: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(settings) as store:
        await store.write(put("first"))
        monkeypatch.setattr("agent_gate.store.writer.alike", lambda _units, _sql: 1 // 0)
        monkeypatch.setattr("agent_gate.store.writer.groupby", lambda _units, _key: 1 // 0)
        for _ in range(2):
            with pytest.raises(DependencyUnavailable, match=r"internal error \(ZeroDivisionError\)"):
                await store.write(put("later"))
        assert await values(store) == {"first": "1"}


async def test_units_of_all_kinds_thrown_together_keep_the_chain_whole(
    settings: StoreSettings, tmp_path
) -> None:
    def unit(i: int) -> list[Statement]:
        kinds = [
            [step(f"c{i}")],
            [step(f"c{i % 7}")],
            [step(f"m{i}"), put(f"m{i}")],
            [step(f"x{i}"), change("nobody", "x", expect=1)],
            [put(f"k{i % 11}")],
        ]
        return kinds[i * 7919 % 5]

    async with opened(settings) as store:
        outcomes = []
        for start in range(0, 600, 100):
            writes = (store.write(*unit(i)) for i in range(start, start + 100))
            outcomes += await asyncio.gather(*writes, return_exceptions=True)
        good = [i for i, outcome in enumerate(outcomes) if isinstance(outcome, list)]
        chained = sum(statement.chained for i in good for statement in unit(i))
        assert {type(outcome) for outcome in outcomes} == {list, Conflict}
        assert await store.read("SELECT count(*), max(seq) FROM record") == [(chained, chained)]
        assert (await verify(store, ensure_key(tmp_path / "key"))).ok


@given(st.integers(0, 5000))
@hypothesis_settings(max_examples=50)
def test_a_batch_is_cut_into_few_sizes(count: int) -> None:
    sizes = list(portions(count))
    assert sum(sizes) == count
    assert all(0 < size <= PORTION for size in sizes)


def test_only_a_plain_insert_is_repeated() -> None:
    assert repeated("INSERT INTO t (a, b) VALUES (?, ?)", 2) == "INSERT INTO t (a, b) VALUES (?, ?), (?, ?)"
    assert repeated("INSERT INTO t (a) VALUES (?) ON CONFLICT DO NOTHING", 2) is None
    assert repeated("INSERT INTO t (a) SELECT ?", 2) is None
    assert repeated("UPDATE t SET a = ?", 2) is None

"""Whatever is done to the record behind the gateway's back is named, with chain and row."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from tests.rows import opened, step
from tests.waiting import until

from agent_gate.audit import Sealer, VerifyReport, ensure_key, verify
from agent_gate.audit.record import SELECT, Row
from agent_gate.audit.seal import mac
from agent_gate.errors import ConfigError
from agent_gate.store import Head, Statement, Store, StoreSettings
from agent_gate.store.chain import GENESIS, link

DELETE = "DELETE FROM record WHERE "


async def _filled(store: Store, key: bytes, rows: int = 25, every: int = 10) -> None:
    async with Sealer(store, key, every=every):
        for i in range(rows):
            await store.write(step(f"c{i}", i=i))


async def tampered(settings: StoreSettings, key: bytes, *statements: str) -> VerifyReport:
    async with opened(settings) as store:
        await _filled(store, key)
        await store.write(*(Statement(sql) for sql in statements))
        return await verify(store, key)


def named(report: VerifyReport) -> list[tuple[str, int, str]]:
    return [(problem.chain, problem.seq, problem.kind) for problem in report.problems]


async def test_an_untouched_record_verifies(settings: StoreSettings, key: bytes) -> None:
    report = await tampered(settings, key)
    assert report.ok
    assert (report.rows, report.unsealed) == (25, 0)
    assert report.seals >= 1


@pytest.mark.parametrize(
    "column",
    [
        "call = 'x'",
        "at = at + 1",
        "state = 'failed'",
        "caller = 'x'",
        "tool = 'x'",
        "body = '{}'",
        "step = 1",
    ],
)
async def test_a_changed_row_is_named_whatever_was_changed(
    settings: StoreSettings, key: bytes, column: str
) -> None:
    report = await tampered(settings, key, f"UPDATE record SET {column} WHERE seq = 7")
    assert named(report) == [("home", 7, "changed")]
    assert str(report.problems[0]) == "home 7: row 7 was changed or moved"


@pytest.mark.parametrize("value", ["00" * 32, "no hash"])
async def test_a_changed_hash_is_named(settings: StoreSettings, key: bytes, value: str) -> None:
    report = await tampered(settings, key, f"UPDATE record SET hash = '{value}' WHERE seq = 7")
    assert ("home", 7, "changed") in named(report)


async def test_a_removed_row_is_named(settings: StoreSettings, key: bytes) -> None:
    report = await tampered(settings, key, DELETE + "seq IN (7, 8)")
    assert named(report) == [("home", 7, "removed")]
    assert "rows 7 to 8 were removed" in report.problems[0].text


async def test_a_removed_beginning_is_named(settings: StoreSettings, key: bytes) -> None:
    assert named(await tampered(settings, key, DELETE + "seq <= 3")) == [("home", 1, "removed")]


async def test_two_rows_that_changed_places_are_named(settings: StoreSettings, key: bytes) -> None:
    swap = [(5, 100), (6, 5), (100, 6)]
    report = await tampered(settings, key, *(f"UPDATE record SET seq = {b} WHERE seq = {a}" for a, b in swap))
    assert {("home", 5, "changed"), ("home", 6, "changed")} <= set(named(report))


async def test_a_removed_row_whose_followers_moved_up_is_named(settings: StoreSettings, key: bytes) -> None:
    moves = (f"UPDATE record SET seq = seq - 1 WHERE seq = {seq}" for seq in range(8, 26))
    report = await tampered(settings, key, DELETE + "seq = 7", *moves)
    assert ("home", 7, "changed") in named(report)


async def test_a_row_added_before_the_first_is_named(settings: StoreSettings, key: bytes) -> None:
    columns = "at, state, caller, tool, body, chain, hash"
    added = f"INSERT INTO record (call, step, seq, {columns}) SELECT 'x', 1, -3, {columns} FROM record WHERE seq = 1"
    assert named(await tampered(settings, key, added)) == [("home", -3, "changed")]


async def test_a_cut_tail_is_named(settings: StoreSettings, key: bytes) -> None:
    report = await tampered(settings, key, DELETE + "seq > 12")
    assert named(report) == [("home", 13, "cut")]
    assert report.problems[0].text == "rows 13 to 25 were cut off the end, although sealed"


async def test_a_tail_cut_together_with_its_seals_is_said_to_be(settings: StoreSettings, key: bytes) -> None:
    report = await tampered(settings, key, DELETE + "seq > 24", "DELETE FROM seals WHERE seq > 24")
    assert named(report) == [("home", 25, "cut")]
    assert report.problems[0].text.startswith("row 25 was cut off the end, together with the seals")


async def test_an_emptied_record_is_named(settings: StoreSettings, key: bytes) -> None:
    assert named(await tampered(settings, key, "DELETE FROM record")) == [("home", 1, "cut")]


async def test_a_forged_seal_is_named(settings: StoreSettings, key: bytes) -> None:
    forged = f"UPDATE seals SET mac = '{'0' * 64}' WHERE seq = 25"
    assert named(await tampered(settings, key, forged)) == [("home", 25, "forged seal")]


async def test_a_forged_seal_is_named_whatever_is_written_in_it(settings: StoreSettings, key: bytes) -> None:
    forged = "UPDATE seals SET mac = 'é' WHERE seq = 25"
    assert named(await tampered(settings, key, forged)) == [("home", 25, "forged seal")]


@pytest.mark.parametrize(
    ("change", "named_as"),
    [
        ("UPDATE seals SET mac = X'00' WHERE seq = 25", ("home", 25, "forged seal")),
        ("UPDATE record SET hash = X'00' WHERE seq = 7", ("home", 7, "changed")),
        ("UPDATE record SET body = CAST(X'ff' AS TEXT) WHERE seq = 7", ("home", 7, "changed")),
        ("UPDATE seals SET mac = CAST(X'ff' AS TEXT) WHERE seq = 25", ("home", 25, "forged seal")),
        ("UPDATE record SET seq = 'x' WHERE seq = 7", ("home", 7, "removed")),
        ("UPDATE record SET seq = 7.5 WHERE seq = 7", ("home", 7, "removed")),
        ("UPDATE record SET chain = X'00' WHERE seq = 7", ("home", 7, "removed")),
    ],
)
async def test_a_value_of_another_type_hides_nothing(
    tmp_path: Path, key: bytes, change: str, named_as: tuple[str, int, str]
) -> None:
    report = await tampered(StoreSettings(path=tmp_path / "gate.db", chain="home"), key, change)
    assert named_as in named(report)
    assert all(str(problem) for problem in report.problems)


async def test_a_seal_that_hides_unfinished_calls_is_named(settings: StoreSettings, key: bytes) -> None:
    hiding = "UPDATE seals SET open_from = 26 WHERE seq = 25"
    assert named(await tampered(settings, key, hiding)) == [("home", 25, "forged seal")]


async def test_a_record_rewritten_with_fresh_hashes_does_not_match_its_seal(
    settings: StoreSettings, key: bytes
) -> None:
    async with opened(settings) as store:
        await _filled(store, key)
        before = GENESIS
        for values in await store.read(f"{SELECT} ORDER BY seq"):
            found = Row(*values)
            content = (*found.content[:6], '{"i":"another story"}')
            before = link(before, found.chain, found.seq, content)
            sql = "UPDATE record SET body = ?, hash = ? WHERE seq = ?"
            await store.write(Statement(sql, (content[6], before.hex(), found.seq)))
        problems = named(await verify(store, key))
    assert problems[-1] == ("home", 25, "rewritten")
    assert {kind for _, _, kind in problems} == {"rewritten"}


async def test_a_seal_made_without_the_key_does_not_help_the_forger(
    settings: StoreSettings, key: bytes
) -> None:
    guess = mac(b"guess", "home", Head(12, "x"), 1)
    sql = (
        f"INSERT INTO seals (chain, seq, hash, mac, open_from, at) VALUES ('home', 12, 'x', '{guess}', 1, 1)"
    )
    assert ("home", 12, "forged seal") in named(await tampered(settings, key, "DELETE FROM seals", sql))


async def test_seals_come_every_so_many_rows_and_at_the_end(settings: StoreSettings, key: bytes) -> None:
    async with opened(settings) as store:

        async def sealed() -> bool:
            return bool(await store.read("SELECT 1 FROM seals"))

        async with Sealer(store, key, every=5):
            for i in range(4):
                await store.write(step(f"c{i}"))
            assert not await sealed()
            await store.write(step("c4"))
            await until(sealed)
            store.post(step("c5"))
        assert await store.read("SELECT seq FROM seals ORDER BY seq") == [(5,), (6,)]
        async with Sealer(store, key, every=5):
            pass
        assert await store.read("SELECT count(*) FROM seals") == [(2,)]


class Stumbling:
    """A store whose first write fails as nobody expected."""

    def __init__(self, store: Store) -> None:
        self._store, self.stumbled = store, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, *statements: Statement) -> list[int]:
        if not self.stumbled:
            self.stumbled = True
            raise RuntimeError("a fault in the store")
        return await self._store.write(*statements)


async def test_rows_are_sealed_though_an_earlier_seal_failed_as_nobody_expected(
    settings: StoreSettings, key: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(settings) as store:
        stumbling = Stumbling(store)

        async def sealed() -> bool:
            return await store.read("SELECT seq FROM seals") == [(2,)]

        async with Sealer(cast("Store", stumbling), key, every=1):
            await store.write(step("c1"))
            await until(lambda: stumbling.stumbled)
            await store.write(step("c2"))
            await until(sealed)
    assert "Sealing the record failed" in caplog.text


async def test_a_tail_cut_while_the_gateway_was_down_is_named_even_after_new_rows(
    settings: StoreSettings, key: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(settings) as store:
        await _filled(store, key)
        await store.write(Statement(DELETE + "seq > 20"))
    async with opened(settings) as store, Sealer(store, key):
        assert store.head.seq == 20
        for i in range(5):
            await store.write(step(f"new{i}"))
    async with opened(settings) as store:
        report = await verify(store, key)
    assert named(report)[-1] == ("home", 25, "rewritten")
    assert "was sealed before" in caplog.text


def test_the_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "record.key"
    key = ensure_key(path)
    assert ensure_key(path) == key
    assert len(key) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == ["record.key"]


@pytest.mark.parametrize(
    "spoil", [lambda p: p.write_text(""), lambda p: p.write_text("zz"), lambda p: p.write_text("00")]
)
def test_a_spoilt_key_is_refused(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    path = tmp_path / "record.key"
    spoil(path)
    with pytest.raises(ConfigError, match=r"record\.key is no key of the record"):
        ensure_key(path)

"""A tail that was deleted together with its seals is noticed: a note outside the database says that it was there."""

from pathlib import Path

import pytest
from tests.rows import opened, step

from agent_gate.audit import Heads, Sealer, VerifyReport, verify
from agent_gate.audit.seal import NOTE_SECONDS
from agent_gate.core.ports import SystemClock
from agent_gate.store import Statement, Store, StoreSettings

CUT = (Statement("DELETE FROM record WHERE seq > 12"), Statement("DELETE FROM seals WHERE seq > 12"))


class StandingClock(SystemClock):
    """Monotonic time passes only where the test says so."""

    passed = 1.0

    def monotonic(self) -> float:  # type: ignore[override]
        return self.passed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys" / "record.head"


async def run(store: Store, key: bytes, path: Path, *, first: int = 0, rows: int = 25) -> None:
    """A gateway that writes some rows and ends in good order."""
    async with Sealer(store, key, every=10, heads=Heads(path, key)):
        for number in range(first, first + rows):
            await store.write(step(f"c{number}"))


async def verified(settings: StoreSettings, key: bytes, path: Path) -> VerifyReport:
    async with opened(settings) as store:
        return await verify(store, key, Heads(path, key))


def kinds(report: VerifyReport) -> list[tuple[int, str]]:
    return [(problem.seq, problem.kind) for problem in report.problems]


async def test_a_record_that_is_as_noted_is_whole(settings: StoreSettings, key: bytes, path: Path) -> None:
    async with opened(settings) as store:
        await run(store, key, path)
    async with opened(settings) as store:
        await run(store, key, path, first=25, rows=3)
    report = await verified(settings, key, path)
    assert (report.ok, report.rows, report.unsealed) == (True, 28, 0)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_tail_deleted_with_its_seals_is_noticed(
    settings: StoreSettings, key: bytes, path: Path
) -> None:
    async with opened(settings) as store:
        await run(store, key, path)
        await store.write(*CUT)
    report = await verified(settings, key, path)
    assert kinds(report) == [(13, "cut")]
    assert "rows 13 to 25 were cut off the end" in report.problems[0].text


async def test_a_chain_of_which_nothing_is_left_is_noticed(
    settings: StoreSettings, key: bytes, path: Path
) -> None:
    async with opened(settings) as store:
        await run(store, key, path)
        await store.write(Statement("DELETE FROM record"), Statement("DELETE FROM seals"))
    assert kinds(await verified(settings, key, path)) == [(1, "cut")]


@pytest.mark.parametrize("rows", [3, 40])
async def test_a_cut_tail_is_named_however_much_is_written_after_it(
    settings: StoreSettings, key: bytes, path: Path, rows: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(settings) as store:
        await run(store, key, path)
        await store.write(*CUT)
    async with opened(settings) as store:
        await run(store, key, path, first=100, rows=rows)
    assert kinds(await verified(settings, key, path)) == [(16, "cut") if rows == 3 else (25, "rewritten")]
    assert "record.head says" in caplog.text


async def test_a_gateway_that_runs_notices_that_rows_are_gone_which_nobody_sealed(
    settings: StoreSettings, key: bytes
) -> None:
    async with opened(settings) as store:
        for number in range(5):
            await store.write(step(f"c{number}"))
        await store.write(Statement("DELETE FROM record WHERE seq > 3"))
        assert kinds(await verify(store, key)) == [(4, "cut")]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        *(b'{"home":{"seq":25,"hash":"x","mac":"%b"}}' % mac for mac in (b"y", b"\xc3\xa9", b"\xff")),
    ],
)
async def test_a_note_that_was_tampered_with_is_named_and_kept(
    settings: StoreSettings, key: bytes, path: Path, text: bytes
) -> None:
    async def written(first: int) -> None:
        async with opened(settings) as store:
            await run(store, key, path, first=first)

    await written(0)
    path.write_bytes(text)
    await written(25)
    assert path.read_bytes() == text
    assert kinds(await verified(settings, key, path)) == [(0, "forged seal")]


async def test_a_note_that_cannot_be_written_stops_nothing(
    settings: StoreSettings, key: bytes, path: Path
) -> None:
    async with opened(settings) as store:
        heads = Heads(path, key)
        heads.path = path.parent / "record.key" / "record.head"
        async with Sealer(store, key, every=10, heads=heads):
            await store.write(step("c"))
        assert (await verify(store, key, heads)).ok
        assert await store.read("SELECT seq FROM seals") == [(1,)]


async def test_a_busy_gateway_notes_its_head_now_and_then(
    settings: StoreSettings, key: bytes, path: Path
) -> None:
    clock, heads = StandingClock(), Heads(path, key)
    async with opened(settings) as store:
        sealer = Sealer(store, key, clock=clock, heads=heads)
        async with sealer:
            noted = []
            for number in range(3):
                await store.write(step(f"c{number}"))
                await sealer.seal()
                noted.append(heads.known[store.chain].seq)
                clock.passed += NOTE_SECONDS / 2
        noted.append(heads.known[store.chain].seq)
    assert noted == [1, 1, 3, 3]


async def test_the_end_notes_what_was_sealed_a_moment_before(
    settings: StoreSettings, key: bytes, path: Path
) -> None:
    heads = Heads(path, key)
    async with opened(settings) as store:
        async with Sealer(store, key, clock=StandingClock(), heads=heads) as sealer:
            for number in range(2):
                await store.write(step(f"c{number}"))
                await sealer.seal()
        assert heads.known[store.chain].seq == 2


EVERYTHING = (Statement("DELETE FROM record"), Statement("DELETE FROM seals"))


async def test_a_record_that_is_gone_with_its_seals_and_its_note_is_missed(
    settings: StoreSettings, key: bytes, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def write(*also: Statement, rows: int = 25) -> None:
        async with opened(settings) as store:
            await run(store, key, path, rows=rows)
            await store.write(*also)

    await write(*EVERYTHING)
    path.unlink()
    report = await verified(settings, key, path)
    assert kinds(report) == [(1, "cut")]
    assert "all its rows, its seals and" in report.problems[0].text
    await write(rows=3)
    assert not path.exists(), "a new note would hide what is missing"
    assert "The record is not what" in caplog.text
    assert "may have been cut off" in (await verified(settings, key, path)).problems[0].text
    Heads(path, key).marks_path.unlink()
    assert (await verified(settings, key, path)).ok


async def test_a_gateway_that_never_ran_misses_nothing(
    settings: StoreSettings, key: bytes, path: Path
) -> None:
    assert (await verified(settings, key, path)).ok


@pytest.mark.parametrize("body", ["", "[]", '{"home": {"at": 5.0, "mac": "00"}}'])
async def test_a_mark_that_was_not_made_with_the_key_says_nothing(
    settings: StoreSettings, key: bytes, path: Path, body: str
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Heads(path, key).marks_path.write_text(body)
    assert (await verified(settings, key, path)).ok

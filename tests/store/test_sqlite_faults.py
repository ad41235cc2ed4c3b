"""What the SQLite store does when its disk or its file lets it down: real mounts, locks and failing fsyncs."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.rows import opened, put, step, values
from tests.waiting import PATIENCE, until

from agent_gate.audit import ensure_key, verify
from agent_gate.errors import ConfigError, DependencyUnavailable
from agent_gate.store import Store, StoreSettings, open_store, sqlite

HERE = Path(__file__).parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "gate.db"


def child(program: str, *arguments: str, **env: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, str(HERE / program), *arguments],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1]), **env},
        stdout=subprocess.PIPE,
        text=True,
    )


async def test_only_the_owner_can_read_the_store(path: Path) -> None:
    old = os.umask(0)
    try:
        async with opened(StoreSettings(path=path)) as store:
            await store.write(put("a"))
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
            assert modes == dict.fromkeys(("gate.db", "gate.db-wal", "gate.db-shm", "gate.db.lock"), 0o600)
            assert path.parent.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(old)


def test_a_file_that_is_no_database_is_refused_and_not_locked(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("This is not a database. " * 100)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"gate\.db cannot be opened as the gateway's database"):
            open_store(StoreSettings(path=path))


def test_a_folder_that_cannot_be_made_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be created"):
        open_store(StoreSettings(path=tmp_path / "file" / "gate.db"))


async def _write_until_refused(store: Store) -> tuple[int, DependencyUnavailable]:
    for i in range(20_000):
        try:
            await store.write(step(f"call-{i}", filler="x" * 3000), put(f"call-{i}"))
        except DependencyUnavailable as refused:
            return i, refused
    raise AssertionError("the disk never was full")


async def _fill_and_free(store: Store, fill, free) -> int:
    """Write until the disk is full, see that nothing is half done, free space and see it heal."""
    await store.write(put("first"))
    fill()
    written, refused = await _write_until_refused(store)
    assert "disk full" in refused.message
    assert refused.retry_after
    assert "disk full" in (store.fault or "")
    store.post(step("posted"), put("posted", "y" * 20_000))
    assert await store.read("SELECT count(*) FROM record") == [(written,)]
    free()
    await until(lambda: store.healthy)
    await store.write(step("healed"))
    assert (await values(store))["posted"] == "y" * 20_000
    assert await store.read("SELECT call FROM record ORDER BY seq DESC LIMIT 2") == [("healed",), ("posted",)]
    return written


async def test_a_full_database_refuses_keeps_what_was_posted_and_heals(path: Path) -> None:
    async with opened(StoreSettings(path=path)) as store:
        limit = store._engine._writer.execute
        pages = limit("PRAGMA page_count").fetchone()[0]
        written = await _fill_and_free(
            store,
            lambda: limit(f"PRAGMA max_page_count={pages + 40}").fetchone(),
            lambda: limit("PRAGMA max_page_count=1000000").fetchone(),
        )
        assert written
        report = await verify(store, ensure_key(path.parent / "key"))
        assert report.ok
        assert report.rows == written + 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_disk_refuses_keeps_what_was_posted_and_heals(small_disk: Path, tmp_path: Path) -> None:
    ballast = small_disk / "ballast"
    async with opened(StoreSettings(path=small_disk / "gate.db")) as store:
        written = await _fill_and_free(
            store, lambda: ballast.write_bytes(bytes(1_000_000)), lambda: ballast.unlink()
        )
        assert written
        assert (await verify(store, ensure_key(tmp_path / "key"))).ok
    with contextlib.closing(sqlite3.connect(small_disk / "gate.db")) as check:
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()


async def test_a_locked_file_refuses_after_a_while_and_heals_when_the_lock_goes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT", 0.3)
    async with opened(StoreSettings(path=path)) as store:
        await store.write(put("before"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        waiting = [store.write(step(f"call-{i}"), put(f"call-{i}")) for i in range(3)]
        store.post(put("posted"))
        for refused in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(refused, DependencyUnavailable)
            assert "locked by another program" in refused.message
            assert refused.retry_after
        assert time.monotonic() - started > 0.25
        assert await values(store) == {"before": "1"}
        other.execute("ROLLBACK")
        other.close()
        await until(lambda: store.healthy)
        await store.write(put("after"))
        assert set(await values(store)) == {"before", "posted", "after"}
        assert store.head.seq == 0


async def test_readers_are_not_held_up_by_a_writer(path: Path) -> None:
    async with opened(StoreSettings(path=path)) as store:
        await store.write(put("a"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(PATIENCE):
            assert await values(store) == {"a": "1"}
        other.execute("ROLLBACK")
        other.close()


@pytest.fixture(scope="session")
def failing_fsync(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("compiling the failing fsync needs a C compiler")
    library = tmp_path_factory.mktemp("shim") / "failing_fsync.so"
    source = str(HERE / "failing_fsync.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), source, "-ldl"], check=True)
    return str(library)


def seen_by_child(library: str, path: Path, suffix: str) -> list[str]:
    switch = path.parent.parent / "switch"
    process = child(
        "fsync_child.py",
        str(path),
        str(switch),
        LD_PRELOAD=library,
        FAIL_WHEN=str(switch),
        FAIL_SUFFIX=suffix,
    )
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return json.loads(out)


async def test_a_failed_fsync_breaks_the_store_until_the_next_start(failing_fsync: str, path: Path) -> None:
    before, *during, after = seen_by_child(failing_fsync, path, "-wal")
    assert before == "written"
    assert all("disk I/O error" in text and "start the gateway again" in text for text in during)
    assert after == during[0]
    async with opened(StoreSettings(path=path)) as store:
        await store.write(put("restarted"))
        assert "after" not in await values(store)


def test_a_failed_fsync_of_a_checkpoint_breaks_the_store_too(failing_fsync: str, path: Path) -> None:
    seen = seen_by_child(failing_fsync, path, "gate.db")
    assert seen[:2] == ["written", "written"]
    assert "disk I/O error" in seen[-1]


async def test_the_lock_of_a_killed_gateway_is_taken_over(path: Path) -> None:
    process = child("writing_child.py", json.dumps({"path": str(path)}))
    assert process.stdout is not None
    assert process.stdout.readline()
    with pytest.raises(ConfigError, match=rf"gate\.db is in use by another gateway \(pid {process.pid}\)"):
        open_store(StoreSettings(path=path))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    async with opened(StoreSettings(path=path)) as store:
        await store.write(put("mine now"))
        assert (path.parent / "gate.db.lock").read_text().strip() == str(os.getpid())

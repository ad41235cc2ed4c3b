"""A gateway whose disk is full or whose disk lies: nothing runs unrecorded, and what can heal does."""

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Gateway, running
from tests.waiting import wait_until

SHIM = Path(__file__).resolve().parent.parent / "store" / "failing_fsync.c"
TOOLS = """
tools:
  read: {request: {method: GET, path: /read}}
  write: {args: {note: {text: true}}, request: {method: POST, path: /write}}
"""
PERMISSIONS = 'defaults: [{pattern: "*", action: allow}]\n'


def files(recorder, store):
    config = {
        "gateway": {"port": 0},
        "admin": {"port": 0, "socket": "./data/admin.sock"},
        "agents": {"a": {"token": TOKEN, "rate_limit": {"max_requests_per_minute": 0}}},
        "services": {"home": {"url": recorder.url, "tools": "tools.yaml"}},
        "storage": {"type": "sqlite", "path": str(store)},
        "permissions": "permissions.yaml",
    }
    return {"config.yaml": json.dumps(config), "tools.yaml": TOOLS, "permissions.yaml": PERMISSIONS}


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if os.geteuid() != 0 or mounted.returncode != 0:
        pytest.skip("a small disk needs the right to mount one")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_nothing_runs_while_the_disk_is_full_and_calls_go_on_when_there_is_room(
    tmp_path, recorder, small_disk
):
    recorder.reset()
    with running(tmp_path, files(recorder, small_disk / "gate.db"), "--insecure") as gateway:
        assert gateway.call("read").status == 200
        ballast = small_disk / "ballast"
        fill_the_disk_with(ballast)
        wait_until(lambda: gateway.call("write", {"note": "x" * 5000}).status == 503)
        recorder.reset()
        refused = gateway.call("write", {"note": "x" * 5000})
        assert refused.json["error"]["code"] == "DEPENDENCY_UNAVAILABLE"
        assert refused.json["error"]["retryable"] is True
        assert recorder.requests == []
        ballast.unlink()
        wait_until(lambda: gateway.call("write", {"note": "x" * 5000}).status == 200)
        assert gateway.admin.get("/api/audit/verify")["ok"] is True


def test_a_start_on_a_full_disk_says_that_it_is_full(tmp_path, recorder, small_disk):
    given = files(recorder, small_disk / "gate.db")
    with running(tmp_path, given, "--insecure"):
        pass
    fill_the_disk_with(small_disk / "ballast")
    with pytest.raises(AssertionError, match="disk full, or a size limit reached"):
        Gateway(tmp_path, "--insecure").start()


def test_a_backup_that_finds_no_room_leaves_nothing_that_looks_like_one(tmp_path, recorder, small_disk):
    with running(tmp_path, files(recorder, tmp_path / "data" / "gate.db"), "--insecure"):
        copy, ballast = small_disk / "copy", small_disk / "ballast"
        fill_the_disk_with(ballast)
        command = [COMMAND, "backup", str(copy)]
        refused = nursery.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert refused.returncode == 8
        assert "disk is full" in refused.stderr or "No space left" in refused.stderr
        assert not copy.exists() or list(copy.iterdir()) == []
        ballast.unlink()
        nursery.run(command, cwd=tmp_path, capture_output=True, check=True)
        assert (copy / "gate.db").is_file()
        assert not (copy / "gate.db.part").exists()


def fill_the_disk_with(path):
    """Take all the room there is, a page at a time, because the gateway may write meanwhile."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


@pytest.fixture(scope="session")
def failing_fsync(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("compiling the failing fsync needs a C compiler")
    library = tmp_path_factory.mktemp("shim") / "failing_fsync.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(SHIM), "-ldl"], check=True)
    return str(library)


def test_a_failed_fsync_stops_serving_until_the_next_start(tmp_path, recorder, failing_fsync):
    recorder.reset()
    switch = tmp_path / "fail"
    env = {"LD_PRELOAD": failing_fsync, "FAIL_WHEN": str(switch), "FAIL_SUFFIX": "-wal"}
    store = tmp_path / "data" / "gate.db"
    with running(tmp_path, files(recorder, store), "--insecure", env=env) as gateway:
        wait_until(lambda: gateway.request("GET", "/ready", token=None).status == 200)
        assert gateway.call("read").status == 200
        switch.touch()
        wait_until(lambda: gateway.call("write", {"note": "x"}).status == 503)
        switch.unlink()
        recorder.reset()
        assert gateway.call("write", {"note": "x"}).status == 503
        assert recorder.requests == []
        ready = gateway.request("GET", "/ready", token=None)
        assert ready.status == 503
        assert "store" in {problem["source"] for problem in ready.json["waiting_for"]}
    with running(tmp_path, files(recorder, store), "--insecure") as gateway:
        assert gateway.call("write", {"note": "x"}).status == 200

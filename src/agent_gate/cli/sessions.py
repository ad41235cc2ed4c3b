"""Gateways that live as long as an agent's session: one process, one PID file and one data folder per session."""

import fcntl
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent_gate.cli.operator import AdminClient
from agent_gate.config.files.replace import replace_bytes
from agent_gate.errors import ConfigError, GatewayError, Internal

OTHERS_MAY_WRITE = 0o022
SAFE = re.compile(r"[A-Za-z0-9_-]{1,40}")
START_SECONDS, LEARN_SECONDS, STOP_SECONDS = 30.0, 10.0, 10.0
AWAY = frozenset({"connecting", "failed", "needs_auth"})
SERVE = (sys.executable, "-c", "from agent_gate.cli.commands.serve import command; command()")


def folder_of_runs(env: Mapping[str, str]) -> Path:
    """Where PID files are: a folder of the user's own, gone after a restart of the machine."""
    given = env.get("XDG_RUNTIME_DIR")
    return Path(given) / "agent-gate" if given else Path(tempfile.gettempdir()) / f"agent-gate-{os.getuid()}"


def folder_of_data(env: Mapping[str, str]) -> Path:
    state = env.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "agent-gate" / "sessions"


def refuse_foreign(folder: Path) -> None:
    """In a folder that others can write into, a PID file could be a link to any file, or name any process."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & OTHERS_MAY_WRITE:
        raise ConfigError(
            "is not a folder that only you can write into; remove it, or set XDG_RUNTIME_DIR to one of your own",
            where=str(folder),
        )


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One start at a time: another one waits, and then finds the gateway that this one started."""
    with (folder / "start.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def safe(session: str) -> str:
    """A session's id as part of a file name; ids that would not fit keep apart by a digest."""
    if SAFE.fullmatch(session):
        return session
    return f"{re.sub('[^A-Za-z0-9_-]', '_', session)[:24]}-{sha256(session.encode()).hexdigest()[:12]}"


def serves(pid: int, data: Path) -> bool:
    """Whether that process is there and is the gateway of this data folder, since numbers are used again."""
    told = [b"--data", os.fsencode(data)]
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
        argv = ["ps", "-ww", "-o", "args=", "-p", str(pid)]
        shown = subprocess.run(argv, capture_output=True, check=False).stdout
        return b" ".join([*told, b""]) in shown
    except OSError:
        return False
    return any(words[at : at + 2] == told for at in range(len(words)))


@dataclass(frozen=True, slots=True)
class Session:
    """One session's files. `pid_file` holds nothing but the number; the session is in its name."""

    id: str
    runs: Path
    data: Path

    @property
    def pid_file(self) -> Path:
        return self.runs / f"agent-gate-{safe(self.id)}.pid"

    @property
    def announcement(self) -> Path:
        return self.data / "serve.json"

    def pid(self) -> int | None:
        """The running gateway; None where there is none, whatever the file says."""
        try:
            number = int(self.pid_file.read_text())
        except (OSError, ValueError):
            return None
        return number if serves(number, self.data) else None

    def told(self) -> dict[str, Any]:
        """What the gateway printed when it was up: url, admin, socket, pid, fingerprint."""
        try:
            found = json.loads(self.announcement.read_text().partition("\n")[0])
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


class Sessions:
    """All sessions of this user."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.runs = folder_of_runs(env)
        refuse_foreign(self.runs)
        self.data = folder_of_data(env)

    def session(self, ident: str) -> Session:
        return Session(ident, self.runs, self.data / safe(ident))

    def known(self) -> list[Session]:
        names = [file.name[len("agent-gate-") : -len(".pid")] for file in self.runs.glob("agent-gate-*.pid")]
        return [self.session(name) for name in sorted(names)]

    def clean(self) -> list[str]:
        """Remove the PID files of gateways that are gone; returns their sessions."""
        stale = [session for session in self.known() if session.pid() is None]
        for session in stale:
            session.pid_file.unlink(missing_ok=True)
        return [session.id for session in stale]

    def start(self, ident: str, options: Sequence[str]) -> Session:
        """A gateway of this session's own in the background; the one that already runs, if there is one."""
        session = self.session(ident)
        for folder in (self.runs, session.data):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_foreign(self.runs)
        with alone(session.data):
            self.clean()
            if session.pid() is None:
                self._start(session, options)
        return session

    def _start(self, session: Session, options: Sequence[str]) -> None:
        process = self._spawn(session, options)
        # Whole or not at all: a start of another session takes a half-written file for that of a gateway that is gone.
        replace_bytes(session.pid_file, str(process.pid).encode())
        try:
            self._wait(session, process)
        except Internal:
            session.pid_file.unlink(missing_ok=True)
            raise

    def _spawn(self, session: Session, options: Sequence[str]) -> "subprocess.Popen[bytes]":
        argv = [
            *SERVE,
            "--insecure",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--data",
            str(session.data),
            *options,
        ]
        with session.announcement.open("wb") as out, (session.data / "serve.log").open("ab") as log:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "LOG_REQUESTS": "1"},
            )

    def _wait(self, session: Session, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_SECONDS
        log = session.data / "serve.log"
        while not session.told():
            if process.poll() is not None:
                last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no word why"]
                raise Internal(f"The gateway of session {session.id} ended at once: {last[0]} (log: {log})")
            if time.monotonic() > deadline:
                process.terminate()
                raise Internal(f"The gateway of session {session.id} did not come up in time (log: {log})")
            time.sleep(0.02)

    def learn(self, session: Session) -> list[str]:
        """Wait a while for sources of which nothing is known yet: a script is typed by the tools that it finds first.

        Returns those that are not connected.
        """
        client = AdminClient(Path(str(session.told().get("socket", ""))))
        deadline = time.monotonic() + LEARN_SECONDS
        while True:
            try:
                states = client.get("/api/sources")
            except GatewayError:
                return []
            new = any(state["status"] == "connecting" and not state["tools"] for state in states)
            if not new or time.monotonic() > deadline:
                return [state["key"] for state in states if state["status"] in AWAY]
            time.sleep(0.05)

    def stop(self, ident: str) -> bool:
        """End the session's gateway and remove its PID file; False where none was running."""
        session = self.session(ident)
        pid = session.pid()
        if pid is not None:
            end(pid, session.data)
        session.pid_file.unlink(missing_ok=True)
        session.announcement.unlink(missing_ok=True)
        return pid is not None


def end(pid: int, data: Path) -> None:
    """Ask the process to stop, wait, and insist at last."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while not is_gone(pid, data) and time.monotonic() < deadline:
        time.sleep(0.02)
    if not is_gone(pid, data):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_gone(pid: int, data: Path) -> bool:
    """Whether the process has ended; our own child is also collected."""
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return not serves(pid, data)


def exports(session: Session, env: Mapping[str, str]) -> list[str]:
    """Lines for a shell that tell scripts where the gateway is; the token is read from its file, not written out."""
    url = str(session.told().get("url", ""))
    token = session.data / "agent.token"
    lines = [f"export {name}={shlex.quote(url)}" for name in ("AGENT_GATE_URL", "TOOLSCRIPT_GATEWAY_URL")]
    lines.append(f"export AGENT_GATE_SESSION={shlex.quote(session.id)}")
    if token.exists():
        lines.append(f'export AGENT_TOKEN="$(cat {shlex.quote(str(token))})"')
    if token.exists() or env.get("AGENT_TOKEN"):
        lines.append(f'export DENO_AUTH_TOKENS="$AGENT_TOKEN@{urlsplit(url).netloc}"')
    return lines

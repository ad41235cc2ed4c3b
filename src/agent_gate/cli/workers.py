"""`serve --workers N`: one parent and N processes on one port, that are one gateway to callers.

The parent serves nobody. It holds the programs of stdio servers, starts again what dies, passes signals on, and ends
when all have ended.
"""

import asyncio
import ctypes
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from agent_gate.cli.output import put, say
from agent_gate.config.configuration import Configuration
from agent_gate.config.options import Options
from agent_gate.config.settings import Settings
from agent_gate.core.ports import SystemClock
from agent_gate.core.tasks import ends_within
from agent_gate.errors import ConfigError
from agent_gate.net.server import cannot_listen
from agent_gate.sources.mcp.process.lender import Lender
from agent_gate.surfaces.listeners import PUBLIC_PORT

STOP = (signal.SIGINT, signal.SIGTERM)
SHORTEST, LONGEST = 0.2, 5.0
SETTLED = 10.0
"""A worker that ran for so many seconds is started again at once when it dies."""
DEATH_SIGNAL = 1
STANDARD_OUTPUT = 1
UNREAD = select.POLLERR | select.POLLHUP
"""What a pipe says whose reader is gone, and what a pair of sockets does, as the loop makes it for its children."""
LENDER = "lender.sock"


def end_with_parent() -> None:
    """A worker is asked to stop when its parent is gone, however it went.

    One that was gone before we could ask for that signal is known by our line, which nobody reads any more.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGTERM)
    line = select.poll()
    line.register(STANDARD_OUTPUT, 0)
    if any(event & UNREAD for _fd, event in line.poll(0)):
        say("This worker ends, since the process that started it has ended", err=True)
        sys.exit(1)


def check(settings: Settings, count: int) -> None:
    """Say why several workers cannot be, where that is so."""
    if settings.storage.type != "postgres":
        raise ConfigError(
            f"--workers {count} needs `storage: {{type: postgres, url: …}}`: a SQLite file has one writer, and one "
            "record is one chain. Use PostgreSQL, or serve without --workers"
        )
    if settings.sources.get("browser"):
        raise ConfigError(
            "--workers cannot serve `browser`: the pages of an agent are open in one process, and its next call may come "
            "to another. Serve the browser from a gateway of its own"
        )


def hold_port(host: str, port: int, life: ExitStack) -> int:
    """The port that all workers share: held, without listening, so that port 0 is the same one for all."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    held = life.enter_context(socket.socket(family, socket.SOCK_STREAM))
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        held.bind((host, port))
    except OSError as error:
        raise cannot_listen(host, port, error, PUBLIC_PORT) from error
    return int(held.getsockname()[1])


@dataclass(slots=True)
class WorkerProcess:
    number: int
    words: Sequence[str]
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> dict[str, object]:
        """Start it and wait for its line; empty where it ended without one."""
        self.process = await asyncio.create_subprocess_exec(
            *self.words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        return json.loads(line) if line.startswith(b"{") else {}

    def send(self, number: int) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)


class WorkersParent:
    """Keeps its workers running until it is told to stop."""

    def __init__(self, workers: Sequence[WorkerProcess]) -> None:
        self.workers = workers
        self._stopping = asyncio.Event()
        self._clock = SystemClock()

    async def run(self) -> int:
        """Serve until a signal; the exit code."""
        loop = asyncio.get_running_loop()
        for number in STOP:
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self._pass_on, signal.SIGHUP)
        first, *others = self.workers
        # Alone at first, since what a first start makes (keys, a certificate, the schema) is made once.
        announced = await first.start()
        if not announced:
            return await wait_end(first)
        await asyncio.gather(*(worker.start() for worker in others))
        pids = [worker.process.pid for worker in self.workers if worker.process is not None]
        put(json.dumps({**announced, "pid": os.getpid(), "workers": pids}))
        keeping = [asyncio.ensure_future(self._keep(worker)) for worker in self.workers]
        await self._stopping.wait()
        self._pass_on(signal.SIGTERM)
        codes = await asyncio.gather(*keeping)
        return max(codes, default=0)

    def _pass_on(self, number: int) -> None:
        for worker in self.workers:
            worker.send(number)

    async def _keep(self, worker: WorkerProcess) -> int:
        """Start a worker again whenever it dies, at first at once and then less and less often."""
        delay, began = SHORTEST, self._clock.monotonic()
        while True:
            code = await wait_end(worker)
            if self._stopping.is_set():
                return code
            delay = SHORTEST if self._clock.monotonic() - began > SETTLED else min(LONGEST, delay * 2)
            say(f"Worker {worker.number} ended with code {code}; it is started again", err=True)
            if await ends_within(delay, self._stopping.wait()):
                return 0
            began = self._clock.monotonic()
            await worker.start()
            if self._stopping.is_set():
                worker.send(signal.SIGTERM)


async def wait_end(worker: WorkerProcess) -> int:
    assert worker.process is not None
    return await worker.process.wait()


def words_of(options: Options, number: int, port: int, lender: Path) -> list[str]:
    """The command of one worker: the same options, but the operator's listeners, which the first has."""
    admin = {
        "--admin-host": options.admin_host,
        "--admin-port": options.admin_port,
        "--admin-tls": options.admin_tls,
    }
    given = {
        "--config": options.config,
        "--permissions": options.permissions,
        "--host": options.host,
        "--port": port,
        "--data": options.data,
        **(admin if number == 1 else {}),
        "--worker": number,
        "--lender": lender,
    }
    named = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    flags = [*(["--insecure"] if options.insecure else []), *([] if options.config else ["--no-config"])]
    return [sys.executable, "-m", "agent_gate", "serve", *named, *flags]


async def serve_workers(options: Options, count: int) -> int:
    settings = Configuration(options).settings
    check(settings, count)
    with ExitStack() as life:
        port = hold_port(settings.gateway.host, settings.gateway.port, life)
        lender = Lender(settings.storage.path.absolute().parent / LENDER, settings.limits.max_result_bytes)
        await lender.start()
        try:
            workers = [
                WorkerProcess(number, words_of(options, number, port, lender.path))
                for number in range(1, count + 1)
            ]
            return await WorkersParent(workers).run()
        finally:
            await lender.close()

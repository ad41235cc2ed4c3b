"""One child process below a guard of its own: started without a shell, ended without leftovers."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent_gate.observe.lines import lines as source_lines

log = logging.getLogger("agent_gate.sources.mcp")

INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
LAUNCHER = str(Path(__file__).with_name("launch.py"))
TAIL_LINES = 20
LONGEST_LINE = 500
EOF_SECONDS = 2.0
TERM_SECONDS = 2.0
KILL_SECONDS = 5.0


def child_environment(declared: Mapping[str, str]) -> dict[str, str]:
    """What a server sees: the few variables every program needs, and those its entry declares."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**kept, **declared}


class LineReader(asyncio.Protocol):
    """Cuts a pipe into lines of bounded length and hands each on."""

    def __init__(
        self,
        line: Callable[[bytes], None],
        ended: Callable[[], None],
        overflow: Callable[[], None],
        limit: int,
    ) -> None:
        self.line = line
        self.ended = ended
        self.overflow = overflow
        self.limit = limit
        self.parts: list[bytes] = []
        self.size = 0

    def data_received(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = line
            if self.parts:
                whole = b"".join([*self.parts, line])
                self.parts.clear()
                self.size = 0
            if whole:
                self.line(whole)
        if rest:
            self.keep(rest)

    def keep(self, head: bytes) -> None:
        self.parts.append(head)
        self.size += len(head)
        if self.size > self.limit:
            self.parts.clear()
            self.size = 0
            self.overflow()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self.parts:
            rest = b"".join(self.parts)
            self.parts.clear()
            self.line(rest)
        self.ended()


class Tail(asyncio.Protocol):
    """Logs a child's standard error and keeps its last lines for the reason of a failure."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: deque[str] = deque(maxlen=TAIL_LINES)
        self.rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, rest = (self.rest + data).split(b"\n")
        self.rest = rest[:LONGEST_LINE]
        for line in lines:
            text = line[:LONGEST_LINE].decode(errors="replace").rstrip()
            self.lines.append(text)
            source_lines.keep(self.name, text)
            log.debug("%s: %s", self.name, text)

    def text(self) -> str:
        rest = [self.rest.decode(errors="replace")] if self.rest else []
        return "\n".join([*self.lines, *rest])[-2_000:]


class Child:
    """A running program. `exited` is done, with its exit code, when it and all it started have ended.

    `process` is the guard (`launch.py`), the program's parent. `guard` is the open end of a pipe: when it closes,
    because we close it or because this process dies, the guard kills whatever is left below it.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", tail: Tail, guard: int) -> None:
        self.process = process
        self.tail = tail
        self.guard = guard
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.transports: list[asyncio.BaseTransport] = []
        self.stdin: asyncio.WriteTransport | None = None

    async def connect(self, lines: LineReader) -> None:
        """Read and write its pipes on the event loop."""
        loop, process = asyncio.get_running_loop(), self.process
        self.stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, process.stdin)
        self.transports.append(self.stdin)
        self.transports.append((await loop.connect_read_pipe(lambda: lines, process.stdout))[0])
        self.transports.append((await loop.connect_read_pipe(lambda: self.tail, process.stderr))[0])

    def watch_exit(self) -> None:
        """Learn of the guard's exit without a thread, where the system lets us."""
        loop, guard = asyncio.get_running_loop(), self.process.pid
        if not hasattr(os, "pidfd_open"):
            waiting = loop.run_in_executor(None, os.waitid, os.P_PID, guard, os.WEXITED | os.WNOWAIT)
            waiting.add_done_callback(lambda _: self.reap())
            return
        handle = os.pidfd_open(guard)

        def ended() -> None:
            loop.remove_reader(handle)
            os.close(handle)
            self.reap()

        loop.add_reader(handle, ended)

    def abandon(self) -> None:
        """End a program whose exit nobody can hear of, because no descriptor is left."""
        for pipe in self.process.stdin, self.process.stdout, self.process.stderr:
            if pipe is not None:
                pipe.close()
        self.kill()
        self.reap()

    def reap(self) -> None:
        """The guard has ended, and before it everything below it."""
        self.kill()
        code = self.process.wait()
        if not self.exited.done():
            self.exited.set_result(code)

    def kill(self) -> None:
        """Have the guard end everything."""
        if self.guard >= 0:
            os.close(self.guard)
            self.guard = -1

    async def wait_exit(self, seconds: float) -> bool:
        done, _ = await asyncio.wait([self.exited], timeout=seconds)
        return bool(done)

    async def stop(self) -> None:
        """Close its input, then ask, then kill; whatever it started dies with it."""
        if self.stdin is not None:
            self.stdin.close()
        try:
            if not await self.wait_exit(EOF_SECONDS):
                self.process.send_signal(signal.SIGTERM)
                await self.wait_exit(TERM_SECONDS)
        finally:
            self.kill()
            for transport in self.transports:
                transport.close()
        if not await self.wait_exit(KILL_SECONDS):
            log.warning("%s: some of its processes cannot be ended", self.tail.name)
            self.process.kill()


def start_process(
    argv: Sequence[str], env: Mapping[str, str], cwd: str | None, guarded: int
) -> "subprocess.Popen[bytes]":
    launcher = [sys.executable, "-I", "-S", LAUNCHER, str(guarded)]
    return subprocess.Popen(  # noqa: S603 -- an argv from the operator's file, never a shell
        [*launcher, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
        pass_fds=(guarded,),
    )


async def start_child(
    name: str, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, lines: LineReader
) -> Child:
    """Start `argv` with its output going to `lines`; `OSError` where that is not possible."""
    guarded, guard = os.pipe()
    try:
        process = start_process(argv, env, cwd, guarded)
    except BaseException:
        os.close(guard)
        raise
    finally:
        os.close(guarded)
    child = Child(process, Tail(name), guard)
    try:
        child.watch_exit()
    except OSError:
        child.abandon()
        raise
    # Left in the middle, the loop would close a descriptor that its pipe closes once more, whoever has it by then.
    connecting = asyncio.ensure_future(child.connect(lines))
    try:
        await asyncio.shield(connecting)
    except BaseException:
        await asyncio.wait([connecting])
        await child.stop()
        raise
    return child

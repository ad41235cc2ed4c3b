"""Has large results read by processes of their own, so that nobody else's call waits for it.

Reading tens of megabytes keeps the interpreter to itself for seconds, in whatever thread it happens. So it happens
in another process (`reading_child.py`): two at most, one at a time for each agent, agents in turn, under a deadline. A
result is looked for only when its turn has come, so those who wait hold no memory; where the store is a file, the
process reads the result from there itself. What is small is read at once.
"""

import asyncio
import logging
import os
import subprocess
import sys
import weakref
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import IO, Any, TypeVar, cast

import msgspec

from agent_gate.errors import DependencyUnavailable, ViewFailed
from agent_gate.results.budget import Fits
from agent_gate.results.jobs import Doable
from agent_gate.results.lanes import Lanes
from agent_gate.results.reading import InStore, Stored, size_of
from agent_gate.results.reading_child import (
    SECONDS,
    HeldResult,
    ReaderOrder,
    ReaderReply,
    receive_frame,
    send_frame,
)

log = logging.getLogger("agent_gate.results")

AT_ONCE, MOST_WAITING = 2, 32
SMALL = 16 * 1024
"""Bytes that are read faster than another process is asked."""
IDLE = 10.0
"""Seconds after which a reader without work ends, and its memory is free again."""

TOO_LONG = f"Looking into this result took longer than {SECONDS} seconds. Narrow the selector."
BUSY = (
    f"Others' results are being read, and your turn did not come within {SECONDS} seconds. Look again later"
)
ENDED = "The process that read this result ended before it was done. Look at a smaller part of it."

T = TypeVar("T")
FoundResults = Sequence[Stored] | Sequence[Stored | InStore]
FindResults = Callable[[], Awaitable[Sequence[Stored | InStore]]]


class Reader:
    """One process that reads results."""

    def __init__(self, fits: Fits) -> None:
        function = cast(Any, fits)
        command = [
            sys.executable,
            "-m",
            "agent_gate.results.reading_child",
            function.__module__,
            function.__qualname__,
        ]
        environment = {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "SYSTEMROOT": os.environ.get("SYSTEMROOT", ""),
        }
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Linux shares the processor out by session first: not at the gateway's cost
        )
        self.end = weakref.finalize(self, _end, self._process)

    def exchange(self, job: Doable[Any], results: FoundResults) -> bytes:
        """Blocks until the process has answered; `OSError` or `EOFError` where it ended."""
        order = ReaderOrder(cast(Any, job), tuple(map(held, results)))
        to, back = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        send_frame(cast(Any, to), msgspec.json.encode(order))
        for stored in results:
            if isinstance(stored, Stored):
                to.write(stored.body)
        to.flush()
        return receive_frame(cast(Any, back))


def held(stored: Stored | InStore) -> HeldResult:
    if isinstance(stored, InStore):
        return HeldResult(stored.media_type, stored.size, stored.file, stored.handle)
    return HeldResult(stored.media_type, len(stored.body))


def end_aside(reader: Reader) -> None:
    """End a process without waiting for it here: until the system has its memory back, nobody would be served."""
    asyncio.get_running_loop().run_in_executor(None, reader.end)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        try:
            cast(IO[bytes], stream).close()
        except OSError:  # what was not written yet has nobody to read it
            continue


class Readers:
    """The few processes that read results, and the order in which they are asked."""

    def __init__(self, fits: Fits) -> None:
        self._fits = fits
        self._lanes = Lanes(AT_ONCE, MOST_WAITING)
        self._idle: list[Reader] = []
        self._timer: asyncio.TimerHandle | None = None

    def now(self, job: Doable[T], results: Sequence[Stored]) -> T:
        """Do a small job here."""
        return job.run(results, self._fits)

    async def work(self, lane: Hashable, job: Doable[T], find: FindResults | Sequence[Stored]) -> T:
        """Do a job on results, or on what `find` finds when it is this lane's turn."""
        waiting = True
        try:
            async with asyncio.timeout(SECONDS), self._lanes.turn(lane):
                waiting = False
                results = await find() if callable(find) else find
                if sum(map(size_of, results)) <= SMALL:
                    return self.now(job, [one for one in results if isinstance(one, Stored)])
                return cast(T, msgspec.json.decode(await self._ask(job, results), type=job.gives))
        except TimeoutError:
            raise (DependencyUnavailable(BUSY, retry_after=5) if waiting else ViewFailed(TOO_LONG)) from None

    async def _ask(self, job: Doable[Any], results: FoundResults) -> bytes:
        reader = self._idle.pop() if self._idle else await asyncio.to_thread(Reader, self._fits)
        try:
            reply = await asyncio.to_thread(reader.exchange, job, results)
        except (OSError, EOFError):
            reader.end()
            log.warning("A process that read a result ended before it was done")
            raise ViewFailed(ENDED) from None
        except asyncio.CancelledError:
            end_aside(reader)
            raise
        self._rest(reader)
        return msgspec.json.decode(reply, type=ReaderReply).unpack()

    def _rest(self, reader: Reader) -> None:
        self._idle.append(reader)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(IDLE, self._end_idle)

    def _end_idle(self) -> None:
        idle, self._idle, self._timer = self._idle, [], None
        for reader in idle:
            end_aside(reader)

    def close(self) -> None:
        """End the processes that have nothing to do."""
        idle, self._idle, self._timer = self._idle, [], None
        for reader in idle:
            reader.end()

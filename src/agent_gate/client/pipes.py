"""The host's two pipes as lines, each with a thread of its own."""

import asyncio
import queue
import threading
from contextlib import suppress
from typing import BinaryIO


class Output:
    """Lines to the host, written by a thread of their own so that a slow host stops nothing else."""

    def __init__(self, stream: BinaryIO) -> None:
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stream = stream
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def write(self, message: bytes) -> None:
        """One message as one line; line breaks can only stand between its tokens."""
        self._lines.put(message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            with suppress(BrokenPipeError, ValueError):
                self._stream.write(line)
                self._stream.flush()

    def close(self) -> None:
        self._lines.put(None)
        self._thread.join(2.0)


def lines(stream: BinaryIO, loop: asyncio.AbstractEventLoop) -> "asyncio.Queue[bytes | None]":
    """The host's lines as they come, then None."""
    found: asyncio.Queue[bytes | None] = asyncio.Queue()

    def pump() -> None:
        with suppress(OSError, ValueError, RuntimeError):
            for line in stream:
                loop.call_soon_threadsafe(found.put_nowait, line)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(found.put_nowait, None)

    threading.Thread(target=pump, daemon=True).start()
    return found

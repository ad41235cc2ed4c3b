"""This process's standard input and output as lines, whether they are pipes, terminals, files or nothing at all."""

import asyncio
import os
import shutil
import stat
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Protocol, TextIO

LONGEST_LINE = 4 * 1024 * 1024


class LineWriter(Protocol):
    def write(self, data: bytes) -> None: ...
    def is_closing(self) -> bool: ...
    async def drain(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Lines:
    """One client's two ends. `ends` says that the input is a file: its end is no goodbye of the client's."""

    reader: asyncio.StreamReader
    writer: LineWriter
    ends: bool = False


class FileWriter:
    """Writes to what no event loop can watch, such as a file or `/dev/null`, which never keeps a writer waiting long."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output

    def write(self, data: bytes) -> None:
        self._output.write(data)
        self._output.flush()

    def is_closing(self) -> bool:
        return self._output.closed

    async def drain(self) -> None:
        return None


async def read_line(reader: asyncio.StreamReader) -> bytes:
    """The next line; one that is too long is read to its end and comes back as more than is allowed."""
    size, kept = 0, b""
    while True:
        try:
            line = await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            line = end.partial
        except asyncio.LimitOverrunError as full:
            size += full.consumed
            kept = (await reader.readexactly(full.consumed))[:1]
            continue
        return line if not size else kept + b" " * LONGEST_LINE + b"\n"


def is_watchable(stream: TextIO) -> bool:
    """Whether an event loop can wait for it: a pipe, a socket or a terminal."""
    mode = os.fstat(stream.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stream.isatty()


def pipe_from(source: BinaryIO) -> BinaryIO:
    """A pipe that a thread fills from `source`, no faster than it is read."""
    out, into = os.pipe()

    def copy() -> None:
        with suppress(OSError, ValueError), os.fdopen(into, "wb") as sink:
            shutil.copyfileobj(source, sink)

    threading.Thread(target=copy, daemon=True).start()
    return os.fdopen(out, "rb")


async def open_standard_streams(output: TextIO) -> Lines:
    """This process's stdin, and what was its stdout."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    watched = is_watchable(sys.stdin)
    source = sys.stdin.buffer if watched else pipe_from(sys.stdin.buffer)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    if not is_watchable(output):
        return Lines(reader, FileWriter(output.buffer), ends=not watched)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, output)
    return Lines(reader, asyncio.StreamWriter(transport, protocol, reader, loop), ends=not watched)

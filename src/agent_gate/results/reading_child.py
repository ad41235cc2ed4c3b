"""The process that reads large results: it takes a job from standard input, answers on standard output, and takes the next.

It ends when its input does. The gateway ends it when a job takes too long; where the gateway is gone, an alarm
does. Its memory is bounded, and everybody else's work comes before its own.
"""

import os
import signal
import sqlite3
import sys
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

import msgspec

from agent_gate.errors import InvalidArgs, ViewFailed
from agent_gate.results.budget import Fits
from agent_gate.results.handles import GONE
from agent_gate.results.jobs import ReadingJob
from agent_gate.results.reading import Stored

SECONDS = 20
MEMORY = 1 << 30
NICENESS = 10
OWN_SHARE = Path("/proc/self/autogroup")
LENGTH = 8

TOO_MUCH = (
    "Reading this result takes more memory than there is for it. Look at a part of the text: "
    "`head`, `lines` or `grep`; or have the tool return less."
)


class HeldResult(msgspec.Struct, frozen=True):
    """A result of so many bytes: those that follow the order, or what the store's `file` has under its `handle`."""

    media_type: str
    size: int
    file: str = ""
    handle: str = ""


class ReaderOrder(msgspec.Struct, frozen=True):
    """A job, and the results that it is about."""

    job: ReadingJob
    results: tuple[HeldResult, ...]


class ReaderReply(msgspec.Struct, frozen=True):
    """What a job came to: `done`, or why not."""

    done: msgspec.Raw = msgspec.Raw(b"null")
    wrong_args: str = ""
    failed: str = ""

    def unpack(self) -> bytes:
        if self.wrong_args:
            raise InvalidArgs(self.wrong_args)
        if self.failed:
            raise ViewFailed(self.failed)
        return bytes(self.done)


def receive(stream: BinaryIO, size: int) -> bytes:
    """Exactly so many bytes; `EOFError` where the other side is gone."""
    body = stream.read(size)
    if len(body) < size:
        raise EOFError
    return body


def receive_frame(stream: BinaryIO) -> bytes:
    return receive(stream, int.from_bytes(receive(stream, LENGTH)))


def send_frame(stream: BinaryIO, body: bytes) -> None:
    stream.write(len(body).to_bytes(LENGTH))
    stream.write(body)


def main() -> None:
    fits: Fits = getattr(import_module(sys.argv[1]), sys.argv[2])
    _restrain()
    decode = msgspec.json.Decoder(ReaderOrder).decode
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            order = decode(receive_frame(incoming))
            bodies = [b"" if one.file else receive(incoming, one.size) for one in order.results]
        except EOFError:
            return
        _set_alarm(2 * SECONDS)
        send_frame(outgoing, msgspec.json.encode(_reply(order, bodies, fits)))
        outgoing.flush()
        _set_alarm(0)


def _reply(order: ReaderOrder, bodies: list[bytes], fits: Fits) -> ReaderReply:
    try:
        results = [
            Stored(one.media_type, _fetch(one) if one.file else body)
            for one, body in zip(order.results, bodies, strict=True)
        ]
        return ReaderReply(done=msgspec.Raw(msgspec.json.encode(order.job.run(results, fits))))
    except ViewFailed as error:
        return ReaderReply(failed=error.message)
    except InvalidArgs as error:
        return ReaderReply(wrong_args=error.message)
    except MemoryError:
        return ReaderReply(failed=TOO_MUCH)


def _fetch(held: HeldResult) -> bytes:
    """A result from the store's file, which is only read: the gateway has said already whose it is."""
    try:
        with closing(sqlite3.connect(f"{Path(held.file).as_uri()}?mode=ro", uri=True)) as database:
            found = database.execute("SELECT body FROM artifacts WHERE handle = ?", (held.handle,)).fetchone()
    except sqlite3.Error as error:
        raise ViewFailed(f"The store cannot be read: {error}. Look again later.") from None
    if found is None:
        raise ViewFailed(GONE)
    return bytes(found[0])


def _restrain() -> None:
    """Where the system can: bounded memory, and the processor only when others leave it, for its session too."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with suppress(AttributeError, OSError):
        os.nice(NICENESS)
    with suppress(OSError):
        OWN_SHARE.write_text(str(NICENESS))


def _set_alarm(seconds: int) -> None:
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


if __name__ == "__main__":
    main()

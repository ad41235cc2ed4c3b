"""One gateway per SQLite file: an operating system lock on a side file that holds the owner's pid."""

import fcntl
import os
from pathlib import Path

from agent_gate.errors import ConfigError


class FileLock:
    """Held from `take` until `release` or the end of the process, however it ends."""

    def __init__(self, guarded: Path) -> None:
        self._guarded = guarded
        self._path = guarded.with_name(guarded.name + ".lock")
        self._file: int | None = None

    def take(self) -> None:
        """Take the lock, or raise `ConfigError` naming the process that holds it."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(file)
            raise ConfigError(
                f"{self._guarded} is in use by another gateway (pid {owner}). Stop that one first, "
                "or give this one its own storage path."
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

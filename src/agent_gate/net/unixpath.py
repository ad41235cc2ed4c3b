"""Socket paths longer than the kernel's 108 bytes, reached through a descriptor of their folder."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = 100
DESCRIPTORS = Path("/proc/self/fd")


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """A name under which the socket can be bound or connected to, valid inside the block."""
    if len(os.fsencode(path)) <= LONGEST or not DESCRIPTORS.exists():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield str(DESCRIPTORS / str(folder) / path.name)
    finally:
        os.close(folder)


def check_owner(path: Path) -> None:
    """Refuse to talk to a socket that somebody else could have put there."""
    found, folder = path.lstat(), path.parent.stat()
    trusted = (0, os.geteuid())
    if not stat.S_ISSOCK(found.st_mode):
        raise PermissionError(f"{path} is no socket")
    if found.st_uid not in trusted or folder.st_uid not in trusted:
        raise PermissionError(f"{path} or its folder belongs to another user")
    if folder.st_mode & 0o022 and not folder.st_mode & stat.S_ISVTX:
        raise PermissionError(f"others can write into the folder of {path}; run: chmod 700 {path.parent}")

"""Socket paths longer than the kernel's 108 bytes, reached through a descriptor of their folder."""

import os
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

"""A file with new content in one step: whatever happens on the way, the old content or the new one is there, whole."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from agent_gate.errors import ConfigError

PRIVATE = 0o600


def replace_bytes(path: Path, data: bytes, *, private: bool = False) -> None:
    """A link stays a link, and mode, owner and group stay; a new file, and a `private` one, only its owner can read."""
    try:
        write(path.resolve(), data, private)
    except OSError as error:
        raise ConfigError(
            f"the file cannot be written ({error.strerror}); it is as it was", where=str(path)
        ) from None


def write(target: Path, data: bytes, private: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    before = target.stat() if target.exists() else None
    mode = before.st_mode & 0o777 if before is not None and not private else PRIVATE
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
            if before is not None and not hand_over(handle, before):
                mode &= ~0o070  # it would be another group that may read it now
            os.fchmod(handle, mode)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def hand_over(fresh: int, before: os.stat_result) -> bool:
    """Give the open file to whom the old one belonged, as far as that can be done; whether its group is the same.

    Not by its name: in a folder of somebody else that may be a link by now, to a file that root must not give away.
    """
    for owner in (before.st_uid, -1):
        with suppress(OSError):
            os.chown(fresh, owner, before.st_gid)
            return True
    return os.fstat(fresh).st_gid == before.st_gid

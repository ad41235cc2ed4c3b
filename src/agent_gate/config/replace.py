"""A file with new content in one step: whatever happens on the way, the old content or the new one is there, whole."""

import os
import tempfile
from pathlib import Path

from agent_gate.errors import ConfigError

PRIVATE = 0o600


def replace_bytes(path: Path, data: bytes, *, private: bool = False) -> None:
    """A link stays a link and the mode stays; a new file, and a `private` one, only its owner can read."""
    try:
        write(path.resolve(), data, private)
    except OSError as error:
        raise ConfigError(
            f"the file cannot be written ({error.strerror}); it is as it was", where=str(path)
        ) from None


def write(target: Path, data: bytes, private: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() and not private else PRIVATE
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(mode)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise

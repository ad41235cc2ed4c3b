"""A small secret file that is made once: whole, or not at all."""

import os
import tempfile
from pathlib import Path


def make_once(path: Path, text: str) -> None:
    """Write `text` for the owner's eyes only, unless somebody else was first; a link is not followed."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()

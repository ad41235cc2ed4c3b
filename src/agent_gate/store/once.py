"""A small file that is written whole, or not at all, for the owner's eyes only."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def drafted(path: Path, text: str) -> Iterator[Path]:
    """A durable file with `text` beside `path`, which is gone at the end unless it was moved."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(handle)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def make_once(path: Path, text: str) -> None:
    """Write `text` unless somebody else was first; a link is not followed."""
    with drafted(path, text) as draft, suppress(FileExistsError):
        path.hardlink_to(draft)


def replace_whole(path: Path, text: str) -> None:
    with drafted(path, text) as draft:
        draft.replace(path)

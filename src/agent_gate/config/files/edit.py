"""An edit of a file, checked by reading its result: it must say what was meant and nothing else, or it is refused."""

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agent_gate.errors import ConfigError


class Edit(NamedTuple):
    """The file's new text, and how it differs from the old one."""

    text: str
    diff: str


def entries_in(path: Path, plain: Mapping[str, Any], block: str) -> dict[str, Any]:
    """The entries of a block of a file; none where it is not there yet."""
    entries = plain.get(block) or {}
    if not isinstance(entries, dict):
        raise ConfigError(f"{block}: expected a mapping", where=str(path))
    return entries


def check_edit(
    path: Path, old: str, text: str, expected: Mapping[str, Any], read: Callable[[str, str], object]
) -> Edit:
    """The edit, once reading it has shown that it says what was meant."""
    try:
        meant = read(text, str(path)) == expected
    except ConfigError:
        meant = False
    if not meant:
        raise ConfigError(
            "its layout cannot be extended automatically; add the entry by hand", where=str(path)
        )
    diff = difflib.unified_diff(
        old.splitlines(keepends=True), text.splitlines(keepends=True), str(path), str(path)
    )
    return Edit(text, "".join(diff))

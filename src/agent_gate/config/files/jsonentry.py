"""One entry of a JSON file changed field by field: what a person did not touch stays byte for byte, remarks too."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_gate.config.files.edit import Edit, check_edit, entries_in
from agent_gate.config.files.jsonedit import Jsonc
from agent_gate.config.files.yamlfile import read_text
from agent_gate.errors import ConfigError

SYNTAX = Jsonc()


def current(path: Path) -> tuple[str, dict[str, Any]]:
    """The file's text and what it says."""
    old = read_text(path)
    return old, SYNTAX.read(old, str(path))


def put_entry(path: Path, block: str, key: str, set_: Mapping[str, Any], unset: Sequence[str] = ()) -> Edit:
    """The file with the entry's fields set and unset; an entry that is not there yet is added."""
    old, plain = current(path)
    entries = entries_in(path, plain, block)
    before = entries.get(key) or {}
    after = {name: value for name, value in {**before, **set_}.items() if name not in unset}
    text = old if key in entries else SYNTAX.put(old, [block], key, after)
    for name in after if key in entries else ():
        if before.get(name) != after[name]:
            text = SYNTAX.put(text, [block, key], name, after[name])
    for name in unset:
        text = SYNTAX.drop(text, [block, key], name)
    return check_edit(path, old, text, {**plain, block: {**entries, key: after}}, SYNTAX.read)


def drop_entry(path: Path, block: str, key: str) -> Edit:
    """The file without the entry."""
    old, plain = current(path)
    entries = entries_in(path, plain, block)
    if key not in entries:
        raise ConfigError(f"{block}.{key}: is not in this file", where=str(path))
    left = {name: value for name, value in entries.items() if name != key}
    return check_edit(path, old, SYNTAX.drop(old, [block], key), {**plain, block: left}, SYNTAX.read)

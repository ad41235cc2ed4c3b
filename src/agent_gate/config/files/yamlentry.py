"""One entry of a YAML file changed field by field: what a person did not touch stays byte for byte, comments too."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_gate.config.files.edit import Edit, entries_in
from agent_gate.config.files.yamledit import (
    Yaml,
    add_entry,
    behind,
    check,
    composed,
    current,
    flow,
)
from agent_gate.errors import ConfigError


def put_entry(path: Path, block: str, key: str, set_: Mapping[str, Any], unset: Sequence[str] = ()) -> Edit:
    """The file with the entry's fields set and unset; an entry that is not there yet is added."""
    old, plain = current(path)
    entries = entries_in(path, plain, block)
    if key not in entries:
        return add_entry(path, block, key, set_)
    before = entries[key] if isinstance(entries[key], dict) else {}
    after = {name: value for name, value in {**before, **set_}.items() if name not in unset}
    text = old
    for name in [
        *(name for name in set_ if before.get(name) != set_[name]),
        *(n for n in unset if n in before),
    ]:
        text = _change(text, block, key, name, after)
    return check(path, old, text, {**plain, block: {**entries, key: after}})


def drop_entry(path: Path, block: str, key: str) -> Edit:
    """The file without the entry; comments above and behind it stay."""
    old, plain = current(path)
    entries = entries_in(path, plain, block)
    if key not in entries:
        raise ConfigError(f"{block}.{key}: is not in this file", where=str(path))
    left = {name: value for name, value in entries.items() if name != key}
    return check(path, old, Yaml().drop(old, [block], key), {**plain, block: left or None})


def _change(text: str, block: str, key: str, field: str, after: Mapping[str, Any]) -> str:
    """`text` with one field of the entry as it is in `after`, or without it."""
    entry = _value(_value(composed(text), block), key)
    if entry.id != "mapping" or entry.flow_style or not entry.value:
        return text[: entry.start_mark.index] + flow(after) + text[entry.end_mark.index :]
    lines = text.splitlines(keepends=True)
    found = next(((name, value) for name, value in entry.value if name.value == field), None)
    indent = " " * entry.start_mark.column
    written = f"{indent}{flow(field)}: {flow(after[field])}\n" if field in after else ""
    if found is None:
        last = behind(lines, entry.value[-1][0].start_mark.line, entry.start_mark.column)
        return "".join([*lines[:last], written, *lines[last:]])
    name, value = found
    if field in after and (value.id == "scalar" or value.flow_style):
        return text[: value.start_mark.index] + flow(after[field]) + text[value.end_mark.index :]
    end = behind(lines, name.start_mark.line, name.start_mark.column)
    return "".join([*lines[: name.start_mark.line], written, *lines[end:]])


def _value(node: Any, key: str) -> Any:
    return next(value for name, value in node.value if name.value == key)

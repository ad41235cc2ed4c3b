"""Additions to YAML files as text: everything that stood there stays byte for byte, and the diff is shown first.

An edit is checked by reading its result: it must say what the old file said plus the new entry, or it is refused.
"""

import difflib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from agent_gate.config.files.replace import replace_bytes
from agent_gate.config.files.yamlfile import parse_yaml, read_text, resolve
from agent_gate.errors import ConfigError

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


class Edit(NamedTuple):
    """The file's new text, and how it differs from the old one."""

    text: str
    diff: str


def append_rule(path: Path, rule: Mapping[str, Any]) -> Edit:
    """permissions.yaml with `rule` at the end of `rules`."""
    old, plain = current(path)
    rules = plain.get("rules") or []
    if not isinstance(rules, list):
        raise ConfigError("rules: expected a list", where=str(path))
    text = insert(old, "rules", flow(rule), "- ")
    return checked(path, old, text, {**plain, "rules": [*rules, dict(rule)]})


def add_server(path: Path, key: str, server: Mapping[str, Any]) -> Edit:
    """The file with one more server under `servers`, or under `mcpServers` where that names another file or is absent."""
    _, plain = current(path)
    elsewhere = isinstance(plain.get("servers"), str) or ("mcpServers" in plain and "servers" not in plain)
    return add_entry(path, "mcpServers" if elsewhere else "servers", key, server)


def add_entry(path: Path, block: str, key: str, entry: Mapping[str, Any]) -> Edit:
    """The file with one more entry in the mapping under `block`."""
    old, plain = current(path)
    entries = plain.get(block) or {}
    if not isinstance(entries, dict):
        raise ConfigError(f"{block}: expected a mapping", where=str(path))
    if key in entries:
        raise ConfigError(f"{block}.{key}: is already there", where=str(path))
    text = insert(old, block, f"{flow(key)}: {flow(entry)}", "")
    return checked(path, old, text, {**plain, block: {**entries, key: dict(entry)}})


def save(path: Path, text: str) -> None:
    replace_bytes(path, text.encode())


def current(path: Path) -> tuple[str, dict[str, Any]]:
    """The file's text and what it says; a file that does not exist yet says nothing."""
    old = read_text(path) if path.exists() else ""
    plain = parse_yaml(old, str(path)).plain() or {}
    if not isinstance(plain, dict):
        raise ConfigError("expected a mapping at the top", where=str(path))
    return old, plain


def checked(path: Path, old: str, text: str, expected: Mapping[str, Any]) -> Edit:
    """The edit, once reading it has shown that it says what was meant."""
    try:
        meant = parse_yaml(text, str(path)).plain() == expected
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


def insert(text: str, key: str, entry: str, bullet: str) -> str:
    """`text` with `entry` as the last one of the collection under the top-level `key`."""
    root = YAML(typ="safe", pure=True).compose(text)
    found = [pair for pair in root.value if pair[0].value == key] if root else []
    if not found:
        return f"{with_newline(text)}{key}:\n  {bullet}{entry}\n"
    name, value = found[0]
    if value.id == "scalar":
        return insert_line(text, name.start_mark.line, f"  {bullet}{entry}", "")
    if value.flow_style:
        return insert_in_flow(text, value.end_mark.index - 1, entry, empty=not value.value)
    last = value.value[-1] if value.id == "sequence" else value.value[-1][0]
    return insert_after(text, last.start_mark.line, value.start_mark.column, f"{bullet}{entry}")


def insert_in_flow(text: str, closing: int, entry: str, *, empty: bool) -> str:
    before = text[:closing].rstrip()
    comma = "" if empty or before.endswith(",") else ","
    return f"{before}{comma}{'' if empty else ' '}{entry}{text[closing:]}"


def insert_after(text: str, line: int, indent: int, entry: str) -> str:
    """Behind the lines that belong to the entry starting at `line`: blank ones and those indented deeper."""
    lines = text.splitlines()
    end = line + 1
    for number in range(line + 1, len(lines)):
        stripped = lines[number].lstrip(" ")
        if stripped and len(lines[number]) - len(stripped) <= indent:
            break
        end = number + 1 if stripped else end
    return insert_line(text, end - 1, entry, " " * indent)


def insert_line(text: str, after: int, entry: str, indent: str) -> str:
    lines = with_newline(text).splitlines(keepends=True)
    return "".join([*lines[: after + 1], f"{indent}{entry}\n", *lines[after + 1 :]])


def with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def flow(value: Any) -> str:
    """A value in YAML's flow style on one line, with quotes only where they are needed."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str) and PLAIN.fullmatch(value) and resolve(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)

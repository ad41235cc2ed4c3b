"""YAML edited as text: entries are put in and taken out, and everything else stays byte for byte."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from agent_gate.config.files.edit import Edit, check_edit, entries_in
from agent_gate.config.files.replace import replace_bytes
from agent_gate.config.files.yamlfile import parse_yaml, read_text, resolve
from agent_gate.errors import ConfigError

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


def append_rule(path: Path, rule: Mapping[str, Any]) -> Edit:
    """permissions.yaml with `rule` at the end of `rules`."""
    old, plain = current(path)
    rules = plain.get("rules") or []
    if not isinstance(rules, list):
        raise ConfigError("rules: expected a list", where=str(path))
    text = insert(old, "rules", flow(rule), "- ")
    return check(path, old, text, {**plain, "rules": [*rules, dict(rule)]})


def drop_rule(path: Path, line: int, column: int) -> Edit:
    """permissions.yaml without the rule that begins there; comments around it stay."""
    old, plain = current(path)
    root = composed(old)
    found = [pair for pair in root.value if pair[0].value == "rules"] if root else []
    nodes = found[0][1].value if found and found[0][1].id == "sequence" else []
    places = [(node.start_mark.line + 1, node.start_mark.column + 1) for node in nodes]
    if (line, column) not in places:
        raise ConfigError(f"no rule begins at line {line}, column {column}", where=str(path))
    at = places.index((line, column))
    left = [rule for number, rule in enumerate(plain["rules"]) if number != at]
    if found[0][1].flow_style:
        return check(path, old, cut_from_flow(old, nodes, at), {**plain, "rules": left})
    if left:
        return check(path, old, cut_lines(old, found[0][1], at), {**plain, "rules": left})
    key = found[0][0].start_mark.line
    lines = cut_lines(old, found[0][1], at).splitlines(keepends=True)
    rest = {name: value for name, value in plain.items() if name != "rules"}
    return check(path, old, "".join(lines[:key] + lines[key + 1 :]), rest)


def cut_from_flow(text: str, nodes: Sequence[Any], at: int) -> str:
    """`text` without one node of a flow sequence and the comma that parted it from the next."""
    start = nodes[at - 1].end_mark.index if at else nodes[at].start_mark.index
    end = nodes[at].end_mark.index if at or len(nodes) == 1 else nodes[1].start_mark.index
    return text[:start] + text[end:]


def cut_lines(text: str, block: Any, at: int) -> str:
    lines, first = text.splitlines(keepends=True), block.value[at].start_mark.line
    return "".join(lines[:first] + lines[behind(lines, first, block.start_mark.column) :])


def add_server(path: Path, key: str, server: Mapping[str, Any]) -> Edit:
    """The file with one more server under `servers`, or under `mcpServers` where that names another file or is absent."""
    _, plain = current(path)
    elsewhere = isinstance(plain.get("servers"), str) or ("mcpServers" in plain and "servers" not in plain)
    return add_entry(path, "mcpServers" if elsewhere else "servers", key, server)


def add_entry(path: Path, block: str, key: str, entry: Mapping[str, Any]) -> Edit:
    """The file with one more entry in the mapping under `block`."""
    old, plain = current(path)
    entries = entries_in(path, plain, block)
    if key in entries:
        raise ConfigError(f"{block}.{key}: is already there", where=str(path))
    text = insert(old, block, f"{flow(key)}: {flow(entry)}", "")
    return check(path, old, text, {**plain, block: {**entries, key: dict(entry)}})


def save(path: Path, text: str) -> None:
    replace_bytes(path, text.encode())


def current(path: Path) -> tuple[str, dict[str, Any]]:
    """The file's text and what it says; a file that does not exist yet says nothing."""
    old = read_text(path) if path.exists() else ""
    return old, parse_yaml(old, str(path)).top()


def check(path: Path, old: str, text: str, expected: Mapping[str, Any]) -> Edit:
    return check_edit(path, old, text, expected, lambda new, name: parse_yaml(new, name).plain())


def insert(text: str, key: str, entry: str, bullet: str) -> str:
    """`text` with `entry` as the last one of the collection under the top-level `key`."""
    root = composed(text)
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
    return insert_line(text, behind(text.splitlines(), line, indent) - 1, entry, " " * indent)


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


def composed(text: str) -> Any:
    """The mapping that a text is, with the places of its nodes; None for one that says nothing.

    An edit that cut an entry in the middle of a line leaves no mapping, and `~` is none either.
    """
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except YAMLError:
        root = False
    if root is not None and getattr(root, "id", "") != "mapping":
        raise ConfigError("its layout cannot be changed automatically; change the entry by hand")
    return root


def lines_of(text: str, block: str, key: str) -> tuple[int, int] | None:
    """The first line of an entry and the one behind its last; lines after it that are blank or comments stay."""
    root = composed(text)
    parents = [value for name, value in (root.value if root else ()) if name.value == block]
    entries = parents[0].value if parents and parents[0].id == "mapping" else []
    for name, _ in entries:
        if name.value == key:
            return name.start_mark.line, behind(
                text.splitlines(), name.start_mark.line, name.start_mark.column
            )
    return None


def behind(lines: Sequence[str], first: int, indent: int) -> int:
    """The line behind the entry that starts at `first`: those indented deeper are its own, with blanks among them."""
    end = first + 1
    for number in range(first + 1, len(lines)):
        stripped = lines[number].lstrip(" ")
        if stripped and len(lines[number]) - len(stripped) <= indent:
            break
        end = number + 1 if stripped else end
    return end


class Yaml:
    """`Syntax` for YAML files whose servers are entries of one block, as Goose writes them."""

    def read(self, text: str, name: str) -> dict[str, Any]:
        return parse_yaml(text, name).top()

    def put(self, text: str, block: Sequence[str], key: str, value: Mapping[str, Any]) -> str:
        return insert(self.drop(text, block, key), block[0], f"{flow(key)}: {flow(value)}", "")

    def drop(self, text: str, block: Sequence[str], key: str) -> str:
        found = lines_of(text, block[0], key)
        if found is None:
            return text
        lines = text.splitlines(keepends=True)
        return "".join(lines[: found[0]] + lines[found[1] :])

    def raw(self, text: str, block: Sequence[str], key: str) -> str:
        found = lines_of(text, block[0], key)
        return "".join(text.splitlines(keepends=True)[found[0] : found[1]]) if found else ""

    def restore(self, text: str, block: Sequence[str], _key: str, raw: str) -> str:
        marker = "agent-gate-place"
        placed = insert(text, block[0], f"{marker}: 0", "")
        lines = placed.splitlines(keepends=True)
        return "".join(raw if line.strip() == f"{marker}: 0" else line for line in lines)

"""YAML edited as text: one entry of a block is put in and taken out, and everything else stays."""

from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML

from agent_gate.config.files.edit import flow, insert
from agent_gate.config.files.yamlfile import parse_yaml
from agent_gate.errors import ConfigError


def lines_of(text: str, block: str, key: str) -> tuple[int, int] | None:
    """The first line of an entry and the one behind its last; lines after it that are blank or comments stay."""
    root = YAML(typ="safe", pure=True).compose(text)
    parents = [value for name, value in (root.value if root else ()) if name.value == block]
    entries = parents[0].value if parents and parents[0].id == "mapping" else []
    for name, _ in entries:
        if name.value == key:
            return name.start_mark.line, behind(
                text.splitlines(), name.start_mark.line, name.start_mark.column
            )
    return None


def behind(lines: Sequence[str], first: int, indent: int) -> int:
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
        found = parse_yaml(text, name).plain()
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise ConfigError("expected a mapping at the top", where=name)
        return found

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

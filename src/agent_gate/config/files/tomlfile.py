"""A TOML file into a `Node`. TOML's reader gives no places, so a table is placed at the line of its header."""

import re
import tomllib
from datetime import date, time
from pathlib import Path
from typing import Any

from agent_gate.config.files.nodes import Mark, Node
from agent_gate.config.files.yamlfile import read_text
from agent_gate.errors import ConfigError

LINE = re.compile(r"\(at line (\d+), column (\d+)\)")
HEADER = re.compile(r"^[ \t]*\[\[?([^\]\n]+)\]", re.MULTILINE)


def read_toml(path: Path) -> Node:
    return parse_toml(read_text(path), str(path))


def parse_toml(text: str, name: str) -> Node:
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = LINE.search(str(error))
        mark = Mark(name, int(found[1]), int(found[2])) if found else Mark(name)
        message = LINE.sub("", str(error)).strip()
        raise ConfigError(f"not valid TOML: {message}", where=str(mark)) from None
    return wrap(plain, "", Mark(name), headers(text))


def headers(text: str) -> dict[str, int]:
    """The line of each table header, by its dotted name without quotes."""
    return {
        re.sub(r"[\"' \t]", "", found[1]): text.count("\n", 0, found.start(1)) + 1
        for found in HEADER.finditer(text)
    }


def wrap(value: Any, path: str, mark: Mark, lines: dict[str, int]) -> Node:
    if isinstance(value, dict):
        here = Mark(mark.file, lines[path]) if path in lines else mark
        found = {
            key: wrap(item, f"{path}.{key}" if path else key, here, lines) for key, item in value.items()
        }
        return Node(found, here, {key: item.mark for key, item in found.items()})
    if isinstance(value, list):
        return Node([wrap(item, path, mark, lines) for item in value], mark)
    return Node(value.isoformat() if isinstance(value, (date, time)) else value, mark)

"""TOML edited as text: the tables of one server are put in and taken out, and everything else stays."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from agent_gate.config.files.jsonedit import newline
from agent_gate.config.files.tomlfile import parse_toml

HEADER = re.compile(
    r"""^[ \t]*\[{1,2}(?P<path>(?:"[^"\n]*"|'[^'\n]*'|[^\[\]"'\n])+)\]{1,2}[ \t]*(?:\#[^\n]*)?\r?$""",
    re.MULTILINE,
)
BARE = re.compile(r"[A-Za-z0-9_-]+")
FENCE = re.compile(r'"""|\'\'\'')


def shown_key(key: str) -> str:
    return key if BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def shown(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{shown_key(key)} = {shown(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def header_path(text: str) -> tuple[str, ...]:
    """`mcp_servers."my server".env` as its parts; none where it is no header but a line of an array."""
    try:
        table = tomllib.loads(f"[{text}]\n")
    except tomllib.TOMLDecodeError:
        return ()
    parts: list[str] = []
    while table:
        [(key, table)] = table.items()
        parts.append(key)
    return tuple(parts)


def tables(text: str) -> list[tuple[tuple[str, ...], int, int]]:
    """Every table as its path, where its header's line begins, and where the remarks of the next one begin."""
    heads = [
        found
        for found in HEADER.finditer(text)
        if len(FENCE.findall(text, 0, found.start())) % 2 == 0 and header_path(found["path"])
    ]
    ends = [remarks_above(text, found.start()) for found in heads[1:]] + [len(text)]
    return [(header_path(found["path"]), found.start(), end) for found, end in zip(heads, ends, strict=False)]


def remarks_above(text: str, at: int) -> int:
    """Where the comment lines directly above `at` begin; they belong to what follows them."""
    while True:
        before = text.rfind("\n", 0, max(at - 1, 0)) + 1
        if before >= at or not text[before:at].lstrip().startswith("#"):
            return at
        at = before


class Toml:
    """`Syntax` for TOML files whose servers are tables of their own, as Codex writes them."""

    def read(self, text: str, name: str) -> dict[str, Any]:
        return parse_toml(text, name).top()

    def put(self, text: str, block: Sequence[str], key: str, value: Mapping[str, Any]) -> str:
        line = newline(text)
        head = ".".join(shown_key(part) for part in (*block, key))
        body = "".join(f"{shown_key(name)} = {shown(item)}{line}" for name, item in value.items())
        return self.restore(self.drop(text, block, key), block, key, f"[{head}]{line}{body}")

    def own(self, text: str, block: Sequence[str], key: str) -> list[tuple[int, int]]:
        wanted = (*block, key)
        return [(start, end) for path, start, end in tables(text) if path[: len(wanted)] == wanted]

    def drop(self, text: str, block: Sequence[str], key: str) -> str:
        for start, end in reversed(self.own(text, block, key)):
            text = text[:start] + text[end:]
        return text

    def raw(self, text: str, block: Sequence[str], key: str) -> str:
        return "".join(text[start:end] for start, end in self.own(text, block, key))

    def restore(self, text: str, _block: Sequence[str], _key: str, raw: str) -> str:
        line = newline(text or raw)
        if not text.strip():
            return text + raw
        gap = "" if text.endswith(line * 2) else line if text.endswith(line) else line * 2
        return text + gap + raw

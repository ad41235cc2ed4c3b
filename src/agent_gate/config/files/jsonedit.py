"""JSON with comments, edited as text: members are put in, replaced and taken out, and everything else stays."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent_gate.config.files.jsonfile import SPACE, JsonSpan, locate_json, parse_json

REMARK = re.compile(r"[ \t]*(?://[^\n\r]*|/\*[^\n]*?\*/[ \t]*(?=\r?\n))")
BLANK_TO_LINE_END = re.compile(r"[ \t]*(?://[^\n]*)?\r?\n?")


def newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def step(text: str) -> str:
    """One level of indentation as this file has it: that of its first member."""
    found = re.search(r"\n([ \t]+)\"", text)
    return found[1] if found else "  "


def line_indent(text: str, at: int) -> str:
    begin = text.rfind("\n", 0, at) + 1
    found = re.match(r"[ \t]*", text[begin:at])
    return found[0] if found else ""


def render(text: str, value: object, indent: str) -> str:
    """`value` as this file would write it, `indent` being that of its first line."""
    shown = json.dumps(value, indent=step(text), ensure_ascii=False)
    return shown.replace("\n", newline(text) + indent)


def insert(text: str, parent: JsonSpan, key: str, value: str, indent: str) -> str:
    """`text` with a further last member in `parent`, on a line of its own."""
    line = newline(text)
    member = f"{json.dumps(key, ensure_ascii=False)}: {value}"
    if not parent.members:
        closing = line + line_indent(text, parent.start)
        inside = text[parent.start + 1 : parent.end - 1].rstrip()
        return f"{text[: parent.start + 1]}{inside}{line}{indent}{member}{closing}{text[parent.end - 1 :]}"
    last = parent.members[-1].end
    comma = comma_behind(text, last)
    before = text[:last] + ("," if comma is None else text[last:comma])
    rest = text[comma or last :]
    # A remark behind the last member belongs to it, so the new member goes behind that remark.
    remark = REMARK.match(rest)
    tail = remark[0] if remark else ""
    return f"{before}{tail}{line}{indent}{member}{',' if comma is not None else ''}{rest[len(tail) :]}"


def comma_behind(text: str, at: int) -> int | None:
    """Where the comma that follows a value ends, remarks passed over; None where none follows."""
    space = SPACE.match(text, at)
    end = space.end() if space else at
    return end + 1 if text.startswith(",", end) else None


def remove(text: str, parent: JsonSpan, key: str) -> str:
    """`text` without that member, its comma and the rest of its line."""
    members = parent.members or []
    index = next(i for i, one in enumerate(members) if one.key == key)
    member = members[index]
    start, end = member.start, member.end
    begin = text.rfind("\n", 0, start) + 1
    comma = re.match(r"\s*,", text[end:])
    if comma:
        end += comma.end()
        if not text[begin:start].strip():
            start = begin
            rest = BLANK_TO_LINE_END.match(text, end)
            end = rest.end() if rest else end
        return text[:start] + text[end:]
    before = members[index - 1].end if index else parent.start + 1
    gap = text[before:start]
    kept = re.sub(r",", "", gap, count=1) if index else gap
    return text[:before] + kept.rstrip(" \t\r\n") + text[end:]


class Jsonc:
    """`Syntax` for JSON files, with or without comments and trailing commas."""

    def read(self, text: str, name: str) -> dict[str, Any]:
        return parse_json(text, name).top()

    def put(self, text: str, block: Sequence[str], key: str, value: Mapping[str, Any]) -> str:
        return self.set(text, [*block, key], lambda indent: render(text, value, indent))

    def set(self, text: str, path: Sequence[str], shown: Any) -> str:
        """`text` with a value at `path`; objects on the way that are not there yet are made."""
        here = locate_json(text)
        if here is None:
            above = text + newline(text) if text.strip("\ufeff \t\r\n") and not text.endswith("\n") else text
            text = f"{above}{{}}\n"
            here = JsonSpan(len(text) - 3, len(text) - 1)
        indent = step(text)
        for depth, key in enumerate(path):
            found = here.member(key)
            if found is None:
                value = nested(text, path[depth + 1 :], shown, indent)
                return insert(text, here, key, value, indent)
            if depth == len(path) - 1 or found.value.members is None:
                value = nested(text, path[depth + 1 :], shown, line_indent(text, found.start))
                return text[: found.value.start] + value + text[found.end :]
            here, indent = found.value, line_indent(text, found.start) + step(text)
        return text

    def parent(self, text: str, block: Sequence[str], key: str) -> JsonSpan | None:
        here = locate_json(text)
        for name in block:
            found = here.member(name) if here else None
            here = found.value if found else None
        return here if here and here.member(key) else None

    def drop(self, text: str, block: Sequence[str], key: str) -> str:
        parent = self.parent(text, block, key)
        return remove(text, parent, key) if parent else text

    def raw(self, text: str, block: Sequence[str], key: str) -> str:
        parent = self.parent(text, block, key)
        member = parent.member(key) if parent else None
        return text[member.value.start : member.end] if member else ""

    def restore(self, text: str, block: Sequence[str], key: str, raw: str) -> str:
        return self.set(text, [*block, key], lambda _: raw)


def nested(text: str, path: Sequence[str], shown: Any, indent: str) -> str:
    """The value wrapped into the objects that `path` still lacks."""
    if not path:
        return str(shown(indent))
    line, deeper = newline(text), indent + step(text)
    inside = nested(text, path[1:], shown, deeper)
    return f"{{{line}{deeper}{json.dumps(path[0], ensure_ascii=False)}: {inside}{line}{indent}}}"

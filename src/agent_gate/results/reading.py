"""Turns a result's bytes into what a reader looks at: a text, a JSON value, a table, and other parts.

A text that is itself JSON is read as that JSON; a text of comma- or tab-separated lines is read as a table.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from agent_gate.core.call import Result
from agent_gate.core.tool import Json

MEDIA_TYPES = {"json": "application/json", "mcp": "application/vnd.mcp.tool-result+json"}

TableRow = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns."""

    columns: tuple[str, ...]
    rows: Sequence[TableRow]


@dataclass(frozen=True)
class ResultReading:
    """`value` is the JSON where there is one, `text` always; `others` are parts that are no text, or a resource's.

    `said` is the text as it came, where reading it as JSON gave it other line breaks. `parts` are all parts of an
    MCP result as they came.
    """

    text: str
    value: Json = None
    is_json: bool = False
    others: tuple[str, ...] = ()
    said: str | None = None
    parts: tuple[Mapping[str, Any], ...] = ()

    @property
    def opaque(self) -> list[int]:
        """Where the parts stand that no text can show: images, sounds, binary resources."""
        return [index for index, part in enumerate(self.parts) if data_in(part) is not None]

    @cached_property
    def lines(self) -> list[str]:
        found = self.text.replace("\r\n", "\n").split("\n")
        return found if found[-1] else found[:-1]

    @cached_property
    def table(self) -> Table | None:
        return _json_table(self.value) if self.is_json else _text_table(self.lines)


@dataclass(frozen=True, slots=True)
class Stored:
    """A whole result as it is kept. Reading a large one takes long: not a thing to do on the event loop."""

    media_type: str
    body: bytes

    def read(self) -> ResultReading:
        return read(self.body, self.media_type)


@dataclass(frozen=True, slots=True)
class InStore:
    """A large result that stays in the store's file until whoever reads it opens it there: fetching it would keep the
    interpreter from everybody else."""

    media_type: str
    size: int
    handle: str
    file: str


def size_of(one: Stored | InStore) -> int:
    return one.size if isinstance(one, InStore) else len(one.body)


def read(body: bytes, media_type: str) -> ResultReading:
    """What a stored artifact says."""
    if media_type == MEDIA_TYPES["mcp"]:
        return _read_mcp(msgspec.json.decode(body))
    if media_type == MEDIA_TYPES["json"]:
        return _of_value(msgspec.json.decode(body))
    return _of_text(body.decode("utf-8", "replace"))


def read_result(result: Result) -> ResultReading:
    return read(result.body, MEDIA_TYPES[result.kind])


def _of_value(value: Json) -> ResultReading:
    if isinstance(value, str):
        return _of_text(value)
    return ResultReading(pretty(value), value, True)


def _of_text(text: str) -> ResultReading:
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return ResultReading(text)
        return ResultReading(pretty(value), value, True, said=text)
    return ResultReading(text)


def _read_mcp(result: Mapping[str, Any]) -> ResultReading:
    parts = tuple(part for part in result.get("content") or [] if isinstance(part, dict))
    texts = [text for part in parts if (text := text_in(part)) is not None]
    others = tuple(_other(part, index) for index, part in enumerate(parts) if part.get("type") != "text")
    structured, text = result.get("structuredContent"), "\n".join(texts)
    if structured is not None and not result.get("isError") and not _only_wraps(structured, text):
        return ResultReading(pretty(structured), structured, True, others, parts=parts)
    reading = _of_text(text)
    return replace(reading, others=others, parts=parts)


def text_in(part: Mapping[str, Any]) -> str | None:
    """What a content part says in words: its text, or that of the resource which came along."""
    kind, resource = part.get("type"), part.get("resource")
    if kind == "resource":
        text = resource.get("text") if isinstance(resource, Mapping) else None
    else:
        text = part.get("text") if kind == "text" else None
    return text if isinstance(text, str) else None


def _only_wraps(structured: Json, text: str) -> bool:
    """Whether the structured content is nothing but the text in an object, as many servers send it."""
    return isinstance(structured, dict) and list(structured.values()) == [text]


def _other(part: Mapping[str, Any], index: int) -> str:
    """One line for a part that is not text, such as `image image/png, about 12 kB, part 0`."""
    inner = _inner(part)
    said = [
        str(part.get("type", "part")),
        *(str(inner[key]) for key in ("mimeType", "uri", "name") if inner.get(key)),
    ]
    data = data_in(part)
    size = f", about {max(1, len(data) * 3 // 4000)} kB, part {index}" if data is not None else ""
    return " ".join(said)[:200] + size


def data_in(part: Mapping[str, Any]) -> str | None:
    """The bytes of a part, in base64."""
    inner = _inner(part)
    data = inner.get("data") or inner.get("blob")
    return data if isinstance(data, str) and part.get("type") != "text" else None


def _inner(part: Mapping[str, Any]) -> Mapping[str, Any]:
    resource = part.get("resource")
    return resource if isinstance(resource, Mapping) else part


def pretty(value: Json) -> str:
    """JSON as lines, so that views by line mean something."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()


def compact(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def _json_table(value: Json) -> Table | None:
    """The value, or the one list of records in it, as a table."""
    records = value if isinstance(value, list) else _only_list(value)
    if not records or not all(isinstance(record, dict) for record in records):
        return None
    columns = tuple(dict.fromkeys(key for record in records[:50] for key in record))
    return Table(columns, [[record.get(column) for column in columns] for record in records])


def _only_list(value: Json) -> list[Any] | None:
    lists = (
        [item for item in value.values() if isinstance(item, list) and item]
        if isinstance(value, dict)
        else []
    )
    return lists[0] if len(lists) == 1 else None


def _text_table(lines: Sequence[str]) -> Table | None:
    for delimiter in "\t", ",", ";", "|":
        width = lines[0].count(delimiter) if lines else 0
        if width and len(lines) > 2 and all(line.count(delimiter) >= width for line in lines[:20] if line):
            return _delimited(lines, delimiter)
    return None


def _delimited(lines: Sequence[str], delimiter: str) -> Table | None:
    try:
        head, *rows = csv.reader((line for line in lines if line.strip()), delimiter=delimiter)
    except csv.Error:
        return None
    return Table(tuple(cell.strip() for cell in head), rows)

"""Turns a result into a `ResultEnvelope`: what came back, in few tokens, and how to see the rest.

A small result is its own summary. A large one is described by its structure (counts, key paths, the head of a
table, the first and last lines); what looks like an error is kept word for word.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from agent_gate.core.call import Result
from agent_gate.core.tool import Json
from agent_gate.results.budget import Fits
from agent_gate.results.reading import ResultReading, compact, read_result
from agent_gate.results.views import Frame, shape

SUMMARY_BUDGET, ERROR_BUDGET = 400, 1200
DEEPEST_PATH = 4
MAX_FACTS, MAX_ERRORS, MAX_PATHS, HEAD_ROWS, EDGE_LINES, MAX_PARTS = 12, 8, 24, 3, 6, 4
SHORT_TEXT, LONGEST_LINE = 800, 300

_TROUBLE = re.compile(
    r"\b(error|exception|traceback|fatal|failed|failure|panic|denied|refused|timed out|not found)\b",
    re.IGNORECASE,
)

ResultStatus = Literal["ok", "partial", "error"]


class Artifact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the whole result is kept."""

    handle: str
    media_type: str
    size: int
    digest: str
    expires_at: float | None = None


class ResultEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """`partial` means that the summary is not all: `artifacts` hold the rest and `views` are ways into it."""

    status: ResultStatus
    summary: str
    facts: tuple[str, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    views: tuple[dict[str, Any], ...] = ()

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


def whole(result: Result) -> ResultEnvelope:
    """The envelope of a result that is small enough to be read as it is; its `views` are of parts that are no text."""
    reading = read_result(result)
    text = compact(reading.value) if reading.is_json else reading.text
    views = tuple(see_parts(reading))
    status: ResultStatus = "error" if result.is_error else "partial" if views else "ok"
    return ResultEnvelope(status=status, summary=text, facts=reading.others, views=views)


def summarise(result: Result, artifact: Artifact, fits: Fits) -> ResultEnvelope:
    """The envelope of a result that was stored as `artifact`."""
    reading = read_result(result)
    frame = Frame(fits, ERROR_BUDGET if result.is_error else SUMMARY_BUDGET)
    lines = _clipped(_error_lines(reading) if result.is_error else describe(reading))
    facts = Frame(fits, SUMMARY_BUDGET).take(_clipped((*facts_of(reading), *reading.others)))
    return ResultEnvelope(
        status="error" if result.is_error else "partial",
        summary="\n".join(frame.take(lines)),
        facts=tuple(facts[:MAX_FACTS]),
        artifacts=(artifact,),
        views=tuple(suggest(reading)),
    )


def unkept(envelope: ResultEnvelope, why: str) -> ResultEnvelope:
    """The envelope of a result that could not be stored: what it says is all there is."""
    facts = (f"Only this summary was kept. {why}", *envelope.facts)
    return replace(envelope, facts=facts, artifacts=(), views=())


def unread(result: Result, artifact: Artifact, why: str) -> ResultEnvelope:
    """The envelope of a result that was stored as `artifact`, and that nobody could read."""
    return ResultEnvelope(
        status="error" if result.is_error else "partial",
        summary=f"The tool ran, and its result is stored whole. It has no summary: {why}",
        artifacts=(artifact,),
        views=({"type": "head"},),
    )


def _clipped(lines: Iterable[str]) -> Iterator[str]:
    return (line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in lines)


def _error_lines(reading: ResultReading) -> list[str]:
    """An error is worth more than its structure: both ends of it, as they are."""
    if len(reading.lines) <= 40:
        return reading.lines
    return [*reading.lines[:25], f"({len(reading.lines) - 40} lines left out)", *reading.lines[-15:]]


def describe(reading: ResultReading) -> Iterator[str]:
    """What a reader would say of it, most telling first."""
    if reading.is_json:
        yield from _describe_json(reading)
        return
    if not reading.text and reading.parts:
        yield f"No text; {len(reading.parts)} other part{'s' if len(reading.parts) != 1 else ''}:"
        yield from reading.others
        return
    if is_short(reading):
        yield from reading.lines
        return
    yield f"Text of {len(reading.lines)} lines, {len(reading.text)} characters."
    yield from _table_head(reading)
    trouble = [f"line {at}: {line}" for at, line in enumerate(reading.lines) if _TROUBLE.search(line[:2000])]
    if trouble:
        yield f"{len(trouble)} lines mention an error:"
        yield from trouble[:MAX_ERRORS]
    if reading.table is None:
        yield "It begins:"
        yield from reading.lines[:EDGE_LINES]
        yield "It ends:"
        yield from reading.lines[-EDGE_LINES:]


def is_short(reading: ResultReading) -> bool:
    """Whether a text, beside parts that are large, is best given as it is: both of its ends are all of it."""
    few = len(reading.lines) <= 2 * EDGE_LINES and len(reading.text) <= SHORT_TEXT
    return few and reading.table is None and all(len(line) <= LONGEST_LINE for line in reading.lines)


def _describe_json(reading: ResultReading) -> Iterator[str]:
    yield f"JSON: {shape(reading.value)}."
    trouble = [found for found in _scalars(reading.value) if _TROUBLE.search(found)]
    yield from trouble[:MAX_ERRORS]
    yield from _table_head(reading)
    paths = [f"{path}: {what}" for path, what in key_paths(reading.value)]
    yield from paths[:MAX_PATHS]
    if len(paths) > MAX_PATHS:
        yield f"({len(paths) - MAX_PATHS} more key paths)"


def _table_head(reading: ResultReading) -> Iterator[str]:
    table = reading.table
    if table is None:
        return
    yield f"A table of {len(table.rows)} rows: {' | '.join(table.columns)}"
    for row in table.rows[:HEAD_ROWS]:
        yield " | ".join(_cell(value) for value in row)


def _cell(value: Json) -> str:
    text = value if isinstance(value, str) else compact(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def key_paths(value: Json) -> list[tuple[str, str]]:
    """Each distinct path of keys with what is there; the items of a list are looked at through its first ones."""
    found: dict[str, str] = {}
    todo: list[tuple[str, Json, int]] = [("$", value, 0)]
    while todo and len(found) < 500:
        path, inner, level = todo.pop(0)
        if path != "$":
            found.setdefault(path, shape(inner))
        if level >= DEEPEST_PATH:
            continue
        if isinstance(inner, dict):
            todo.extend((f"{path}.{key}", child, level + 1) for key, child in inner.items())
        elif isinstance(inner, list):
            todo.extend(
                (f"{path}[*]", child, level + 1) for child in inner[:3] if isinstance(child, dict | list)
            )
    return list(found.items())


def _scalars(value: Json) -> Iterator[str]:
    """Top-level texts, where services put their messages."""
    if isinstance(value, dict):
        yield from (f"{key}: {inner}" for key, inner in value.items() if isinstance(inner, str))


def facts_of(reading: ResultReading) -> list[str]:
    """Single values at the top of the result, as `key: value`."""
    if not isinstance(reading.value, dict):
        return []
    plain = ((key, inner) for key, inner in reading.value.items() if not isinstance(inner, dict | list))
    return [f"{key}: {_cell(inner)}" for key, inner in plain][:MAX_FACTS]


def see_parts(reading: ResultReading) -> Iterator[dict[str, Any]]:
    yield from ({"type": "part", "index": index} for index in reading.opaque[:MAX_PARTS])


def suggest(reading: ResultReading) -> Iterator[dict[str, Any]]:
    """Selectors that make sense for this result."""
    yield from see_parts(reading)
    if reading.is_json:
        yield {"type": "json_keys"}
        if isinstance(reading.value, dict):
            lists = [key for key, inner in reading.value.items() if isinstance(inner, list)]
            yield from ({"type": "jsonpath", "path": f"$[{key!r}][0:5]"} for key in lists[:1])
        elif isinstance(reading.value, list):
            yield {"type": "jsonpath", "path": "$[0:5]"}
    if reading.table is not None:
        yield {"type": "rows", "start": 0, "end": 50}
    yield {"type": "grep", "pattern": "…"}
    yield {"type": "lines", "start": 0, "end": 100}

"""Turns a stored result and a selector into a bounded view that says what is left.

A selector is an object with a `type`: `head`, `lines`, `rows`, `json_keys`, `grep`, `jsonpath` or `part`. Starts
count from 0 and ends are exclusive. No view is larger than its budget, but for an image or the like, which is shown
whole or not at all; `next` is the selector of what comes after it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import msgspec

from agent_gate.core.tool import Json
from agent_gate.errors import InvalidArgs, ViewFailed
from agent_gate.results.budget import Fits
from agent_gate.results.jsonpath import SelectedValue, select
from agent_gate.results.pattern import LineMatch, Pattern
from agent_gate.results.reading import ResultReading, compact, data_in, text_in

VIEW_BUDGET = 2000
LARGEST = 2**53
MAX_MATCHES, MAX_KEYS, LONG_LINE = 200, 400, 480
MOST_COUNTED = 10_000
MOST_WRITTEN = 256 << 20

Selector = Mapping[str, Any]


class ResultView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`text` is the slice; `left` says in words what it leaves out, `next` how to see the following part.

    `part` is an image, a sound or a binary resource as it came.
    """

    text: str
    left: str = ""
    next: dict[str, Any] | None = None
    part: Mapping[str, Any] | None = None


def view(reading: ResultReading, selector: Selector, fits: Fits, budget: int = VIEW_BUDGET) -> ResultView:
    """Look at a part of a result. Raises `ViewFailed` for an unknown selector, `InvalidArgs` for a bad one."""
    kind = selector.get("type")
    if not isinstance(kind, str) or kind not in VIEWS:
        raise ViewFailed(f"The selector needs a `type`: one of {', '.join(VIEWS)}.")
    if unknown := sorted(selector.keys() - {"type", *TAKEN[kind]}):
        raise InvalidArgs(f"A {kind} selector has no `{unknown[0][:64]}`. It takes {', '.join(TAKEN[kind])}.")
    return VIEWS[kind](reading, selector, Frame(fits, budget))


class Frame:
    """How much a view may hold."""

    def __init__(self, fits: Fits, budget: int) -> None:
        self.fits, self.budget = fits, budget

    def take(self, lines: Iterable[str]) -> list[str]:
        """The most lines from the beginning that fit together; of a first line that is too long, what fits."""
        pool = list(islice(lines, self.budget * 4))
        enough, over = 0, len(pool) + 1
        while over - enough > 1:
            middle = (enough + over) // 2
            if self.fits("\n".join(pool[:middle]), self.budget):
                enough = middle
            else:
                over = middle
        return pool[:enough] if enough else [self.cut(line) for line in pool[:1]]

    def cut(self, text: str) -> str:
        """The longest of a few shorter and shorter prefixes that fits."""
        while text and not self.fits(text, self.budget):
            text = text[: min(len(text) * 4 // 5, self.budget * 16)]
        return text


def number(selector: Selector, name: str, default: int) -> int:
    value = selector.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgs(f"`{name}` is a whole number from 0; got {type(value).__name__}.")
    if not 0 <= value <= LARGEST:
        raise InvalidArgs(f"`{name}` is a whole number from 0 to {LARGEST}.")
    return value


def word(selector: Selector, name: str) -> str:
    value = selector.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidArgs(f"A {selector['type']} selector needs `{name}`, a text.")
    return value


def head(reading: ResultReading, selector: Selector, frame: Frame) -> ResultView:
    start = number(selector, "start", 0)
    chars = number(selector, "chars", 2000)
    text = frame.cut(reading.text[start : start + chars])
    stop, size = start + len(text), len(reading.text)
    if stop >= size or not text:
        return ResultView(text=text)
    follow = {"type": "head", "start": stop, "chars": chars}
    return ResultView(text=text, left=f"{size - stop} of {size} characters follow", next=follow)


def span(selector: Selector, size: int) -> tuple[int, int]:
    start = number(selector, "start", 0)
    stop = min(number(selector, "end", size), size)
    return min(start, size), max(stop, min(start, size))


def lines(reading: ResultReading, selector: Selector, frame: Frame) -> ResultView:
    start, stop = span(selector, len(reading.lines))
    shown = (_short(reading.lines[at]) for at in range(start, stop))
    return _slice("lines", shown, start, len(reading.lines), frame)


def rows(reading: ResultReading, selector: Selector, frame: Frame) -> ResultView:
    """Rows of a table under its header; plain lines where there is no table."""
    table = reading.table
    if table is None:
        return lines(reading, selector, frame)
    start, stop = span(selector, len(table.rows))
    header = _short(" | ".join(table.columns))
    shown = (_short(" | ".join(map(_cell, row))) for row in table.rows[start:stop])
    return _slice("rows", shown, start, len(table.rows), frame, [header])


def _slice(
    kind: str, shown: Iterable[str], start: int, size: int, frame: Frame, header: Sequence[str] = ()
) -> ResultView:
    taken = frame.take(chain(header, shown))
    stop = start + len(taken) - len(header)
    text = "\n".join(taken)
    if stop >= size:
        return ResultView(text=text, left=f"these are {kind} {start} to {stop} of {size}" if start else "")
    return ResultView(
        text=text, left=f"{size - stop} of {size} {kind} follow", next={"type": kind, "start": stop}
    )


def json_keys(reading: ResultReading, selector: Selector, frame: Frame) -> ResultView:
    """With `keys`, their values at `path` (default `$`); without, what keys there are and what is under them."""
    if not reading.is_json:
        raise ViewFailed("This result is not JSON; use head, lines or grep.")
    path = selector.get("path", "$")
    keys = selector.get("keys")
    if not isinstance(path, str) or not (keys is None or _are_words(keys)):
        raise InvalidArgs("`path` is a JSONPath and `keys` a list of key names.")
    value = next((found for _, found in select(reading.value, path)), None)
    if keys:
        picked = {key: value[key] for key in keys if isinstance(value, dict) and key in value}
        return _whole(compact(picked), frame)
    return _listing(value, frame)


def _are_words(keys: object) -> bool:
    return isinstance(keys, list) and all(isinstance(key, str) for key in keys)


def _entries(value: Json) -> Iterable[tuple[str, Json]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list):
        return ((f"[{at}]", inner) for at, inner in enumerate(value))
    return [("$", value)]


def grep(reading: ResultReading, selector: Selector, frame: Frame) -> ResultView:
    """Lines that match a regular expression, each with its number; `start` continues after earlier ones."""
    pattern = Pattern(word(selector, "pattern"), ignore_case=bool(selector.get("ignore_case", False)))
    start = number(selector, "start", 0)
    hits = list(islice(pattern.lines(reading.text, start), MOST_COUNTED))
    shown = frame.take(_numbered(hit) for hit in hits[:MAX_MATCHES])
    if not hits:
        return ResultView(text="", left=f"no line matches from line {start} on")
    if len(shown) == len(hits):
        return ResultView(text="\n".join(shown))
    size = len(hits) if len(hits) < MOST_COUNTED else f"more than {MOST_COUNTED}"
    follow = {**selector, "start": hits[len(shown)].number}
    return ResultView(
        text="\n".join(shown), left=f"{len(shown)} of {size} matches are shown; the rest follow", next=follow
    )


def _numbered(hit: LineMatch) -> str:
    return f"{hit.number}: {_around(*hit.text())}"


def jsonpath(reading: ResultReading, selector: Selector, frame: Frame) -> ResultView:
    if not reading.is_json:
        raise ViewFailed("This result is not JSON; use head, lines or grep.")
    found = select(reading.value, word(selector, "path"))
    start = number(selector, "start", 0)
    first = list(islice(found, 2))
    if not first:
        return ResultView(text="", left="nothing is at this path")
    if len(first) == 1:
        return _whole(compact(first[0][1]), frame)
    values = _Counted(chain(first, found))
    taken = frame.take(_assigned(islice(values, start, None)))
    size, stop = values.all(), start + len(taken)
    if stop >= size:
        return ResultView(text="\n".join(taken))
    follow = {**selector, "start": stop}
    return ResultView(text="\n".join(taken), left=f"{size - stop} of {size} values follow", next=follow)


class _Counted:
    """Passes values on one by one, and knows in the end how many there were."""

    def __init__(self, values: Iterator[SelectedValue]) -> None:
        self._values, self._count = values, 0

    def __iter__(self) -> "_Counted":
        return self

    def __next__(self) -> SelectedValue:
        found = next(self._values)
        self._count += 1
        return found

    def all(self) -> int:
        return self._count + sum(1 for _ in self._values)


def _assigned(values: Iterable[SelectedValue]) -> Iterator[str]:
    """A line for each value. Values inside each other are written again and again, so there is an end to it."""
    written = 0
    for path, value in values:
        text = compact(value)
        written += len(text)
        if written > MOST_WRITTEN:
            raise InvalidArgs("The values at this path are too large to be listed. Narrow the JSONPath.")
        yield _short(f"{path} = {text}")


def _whole(text: str, frame: Frame) -> ResultView:
    shown = frame.cut(text)
    left = (
        ""
        if len(shown) == len(text)
        else f"{len(text) - len(shown)} of {len(text)} characters; narrow the selector"
    )
    return ResultView(text=shown, left=left)


def _listing(value: Json, frame: Frame) -> ResultView:
    size = len(value) if isinstance(value, dict | list) else 1
    taken = frame.take(_short(f"{key}: {shape(inner)}") for key, inner in islice(_entries(value), MAX_KEYS))
    left = "" if len(taken) == size else f"{size - len(taken)} of {size} keys are not shown"
    return ResultView(text="\n".join(taken), left=left)


def _around(line: str, at: int) -> str:
    """The part of a long line in which a match ends, with what is left out on either side."""
    begin = max(0, min(at - LONG_LINE // 2, len(line) - LONG_LINE))
    before = f"({begin} characters before) …" if begin else ""
    return before + _short(line[begin:])


def _short(line: str) -> str:
    if len(line) <= LONG_LINE:
        return line
    return f"{line[:LONG_LINE]}… ({len(line) - LONG_LINE} more characters)"


def _cell(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def shape(value: Json, depth: int = 4) -> str:
    """What a value is, in a few words: `12 items of {id, name}`, `text of 300 characters`, `true`."""
    if isinstance(value, dict):
        return f"{{{', '.join(list(value)[:8])}{', …' if len(value) > 8 else ''}}}"
    if isinstance(value, list):
        return f"{len(value)} items" + (f" of {shape(value[0], depth - 1)}" if value and depth else "")
    if isinstance(value, str) and len(value) > 60:
        return f"text of {len(value)} characters"
    return compact(value)


def part(reading: ResultReading, selector: Selector, frame: Frame) -> ResultView:
    """One part of the result as it came; of a text what fits."""
    index, last = number(selector, "index", 0), len(reading.parts) - 1
    if index > last:
        has = f"its parts are 0 to {last}" if reading.parts else "it has no parts; use another selector"
        raise InvalidArgs(f"This result has no part {index}: {has}.")
    found = reading.parts[index]
    if data_in(found) is not None:
        return ResultView(text="", part=found)
    text = text_in(found)
    return _whole(compact(found) if text is None else text, frame)


VIEWS: Mapping[str, Callable[[ResultReading, Selector, Frame], ResultView]] = {
    "head": head,
    "lines": lines,
    "rows": rows,
    "json_keys": json_keys,
    "grep": grep,
    "jsonpath": jsonpath,
    "part": part,
}
TAKEN: Mapping[str, tuple[str, ...]] = {
    "head": ("chars", "start"),
    "lines": ("start", "end"),
    "rows": ("start", "end"),
    "json_keys": ("path", "keys"),
    "grep": ("pattern", "ignore_case", "start"),
    "jsonpath": ("path", "start"),
    "part": ("index",),
}
"""What each may say beside its `type`."""

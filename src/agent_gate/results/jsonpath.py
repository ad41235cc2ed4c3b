"""Turns a JSONPath into the values it selects, each with the path where it stands.

Understood: `$`, `.name`, `['name']`, `[3]`, `[-1]`, `[2:5]`, `[*]`, `.*` and `..name`. Filters are not: what
they are for, `grep` and `rows` do.
"""

import re
from collections.abc import Iterator

from agent_gate.core.tool import Json
from agent_gate.errors import InvalidArgs

_STEP = re.compile(
    r"(?P<deep>\.\.)(?P<deep_name>\*|[^\W\d][\w-]*)"
    r"|\.(?P<name>\*|[^\W\d][\w-]*)"
    r"|\[(?P<quote>['\"])(?P<quoted>.*?)(?P=quote)\]"
    r"|\[(?P<all>\*)\]|\[(?P<index>-?\d{1,9})\]|\[(?P<low>-?\d{0,9}):(?P<high>-?\d{0,9})\]"
)

MOST_VALUES = 4_000_000

SelectedValue = tuple[str, Json]


class Effort:
    """How many values a path may still look at: each `..` after another looks at all of them again."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_VALUES

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise InvalidArgs(
                f"The JSONPath looks at more than {MOST_VALUES} values. Name more of the path, with fewer `..`."
            )


def select(value: Json, path: str) -> Iterator[SelectedValue]:
    """Lazily, in document order; `InvalidArgs` when the path is malformed or looks at too much."""
    steps, effort = _parse(path), Effort()
    found: Iterator[SelectedValue] = iter([("$", value)])
    for step in steps:
        found = _follow(found, step, effort)
    return found


def _parse(path: str) -> list[re.Match[str]]:
    if not path.startswith("$"):
        raise _malformed(path, 0)
    steps, at = [], 1
    while at < len(path):
        step = _STEP.match(path, at)
        if not step:
            raise _malformed(path, at)
        steps.append(step)
        at = step.end()
    return steps


def _malformed(path: str, at: int) -> InvalidArgs:
    return InvalidArgs(
        f"The JSONPath cannot be read from position {at + 1} ({path[at : at + 20]!r}). "
        "Use $, .name, ['name'], [0], [2:5], [*], .* and ..name."
    )


def _follow(places: Iterator[SelectedValue], step: re.Match[str], effort: Effort) -> Iterator[SelectedValue]:
    for path, value in places:
        effort.spend()
        if step["deep"]:
            for at, inner in _descend(path, value, effort):
                yield from _children(at, inner, step["deep_name"])
        elif step["name"] or step["quoted"] is not None:
            yield from _children(
                path, value, step["name"] if step["name"] else step["quoted"], step["quoted"] is not None
            )
        elif isinstance(value, list):
            yield from ((f"{path}[{at}]", value[at]) for at in _indices(step, len(value)))
        elif step["all"]:
            yield from _children(path, value, "*")


def _children(path: str, value: Json, name: str, literal: bool = False) -> Iterator[SelectedValue]:
    if name == "*" and not literal:
        if isinstance(value, dict):
            yield from ((_join(path, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            yield from ((f"{path}[{at}]", inner) for at, inner in enumerate(value))
    elif isinstance(value, dict) and name in value:
        yield _join(path, name), value[name]


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if re.fullmatch(r"[^\W\d][\w-]*", key) else f"{path}[{key!r}]"


def _indices(step: re.Match[str], size: int) -> range:
    if step["all"]:
        return range(size)
    if step["index"] is not None:
        at = int(step["index"])
        at += size if at < 0 else 0
        return range(at, at + 1) if 0 <= at < size else range(0)
    low, high = (int(step[name]) if step[name] else None for name in ("low", "high"))
    return range(size)[low:high]


def _descend(path: str, value: Json, effort: Effort) -> Iterator[SelectedValue]:
    """This value and all below it, without recursion: a result may be nested deeply."""
    levels: list[Iterator[SelectedValue]] = [iter([(path, value)])]
    while levels:
        found = next(levels[-1], None)
        if found is None:
            levels.pop()
            continue
        effort.spend()
        yield found
        if isinstance(found[1], dict | list):
            levels.append(_children(*found, "*"))

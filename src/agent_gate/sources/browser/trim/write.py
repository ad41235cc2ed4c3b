"""Items as text: one line each, neighbours of one kind together."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from agent_gate.sources.browser.trim.item import INDENT, Item

LINE = 400


def write(items: Iterable[Item]) -> str:
    return "\n".join(lines(items, 0))


def lines(items: Iterable[Item], depth: int) -> Iterator[str]:
    margin = " " * (INDENT * depth)
    for kind, some in groupby(items, key=lambda item: item.role if item.packs() else None):
        if kind is not None:
            yield from (f"{margin}{line}" for line in packed(kind, list(some)))
            continue
        for item in some:
            below = item.children
            yield f"{margin}{item.line()}{':' if below else ''}"
            yield from lines(below, depth + 1)


def packed(kind: str, items: list[Item]) -> Iterator[str]:
    """`link "Home" [e3], "About" [e4]`, in lines of a bearable length."""
    line = ""
    for item in items:
        piece = f'"{item.name}" [{item.ref}]'
        if line and len(line) + len(piece) > LINE:
            yield line
            line = ""
        line = f"{line}, {piece}" if line else f"{kind} {piece}"
    if line:
        yield line

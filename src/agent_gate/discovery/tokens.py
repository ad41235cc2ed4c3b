"""Turns text into exact `cl100k_base` token counts, offline and without a dependency.

The merge ranks are package data, verified by hash and read at the first count: a process that never counts
never pays for them. The character classes are package data too, so that a count does not depend on the
Unicode version of the interpreter.
"""

import re
from binascii import a2b_base64
from collections.abc import Iterator
from functools import cache, lru_cache
from hashlib import sha256
from heapq import heappop, heappush
from importlib.resources import files

import msgspec

from agent_gate.errors import Internal

RANKS_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
LONGEST = 128
"""No token of the encoding is longer than this many bytes, so n bytes are at least n / LONGEST tokens."""

Ranks = dict[bytes, int]
Heap = list[tuple[int, int, int]]


def count(text: str, limit: int | None = None) -> int:
    """The exact number of tokens; with a `limit`, some number above it as soon as the text exceeds it."""
    ranks, total = _ranks(), 0
    for piece in _pieces(text):
        if piece in ranks:
            total += 1
        elif limit is not None and total + len(piece) / LONGEST > limit:
            return limit + 1
        else:
            total += len(_merge_cached(piece) if len(piece) < 64 else _merge(piece))
        if limit is not None and total > limit:
            return total
    return total


def fits(text: str, budget: int) -> bool:
    """Whether the text has at most `budget` tokens; long texts are refused without being read whole."""
    if len(text) * 4 <= budget:
        return True
    if len(text) > budget * LONGEST:
        return False
    return count(text, budget) <= budget


def _pieces(text: str) -> Iterator[bytes]:
    pattern = _ASCII if text.isascii() else _pattern()
    for match in pattern.finditer(text):
        yield match.group().encode("utf-8", "replace")


@lru_cache(maxsize=8192)
def _merge_cached(piece: bytes) -> list[bytes]:
    return _merge(piece)


def _merge(piece: bytes) -> list[bytes]:
    """Byte-pair merges, lowest rank first and leftmost among equals, in O(n log n)."""
    ranks, size = _ranks(), len(piece)
    end = list(range(1, size + 1))
    before = list(range(-1, size))
    heap: Heap = []
    for at in range(size - 1):
        _offer(heap, ranks, piece, at, at + 2)
    while heap:
        _, start, stop = heappop(heap)
        middle = end[start]
        if not middle or middle >= size or end[middle] != stop:
            continue
        end[start], end[middle] = stop, 0
        if stop < size:
            before[stop] = start
            _offer(heap, ranks, piece, start, end[stop])
        if start:
            _offer(heap, ranks, piece, before[start], stop)
    return [piece[at : end[at]] for at in range(size) if end[at]]


def _offer(heap: Heap, ranks: Ranks, piece: bytes, start: int, stop: int) -> None:
    rank = ranks.get(piece[start:stop])
    if rank is not None:
        heappush(heap, (rank, start, stop))


@cache
def _ranks() -> Ranks:
    body = (files("agent_gate.discovery") / "data" / "cl100k_base.tiktoken").read_bytes()
    if sha256(body).hexdigest() != RANKS_SHA256:
        raise Internal("The token ranks in the package are damaged; install agent-gate again.")
    return {a2b_base64(line.partition(b" ")[0]): rank for rank, line in enumerate(body.splitlines())}


@cache
def _pattern() -> re.Pattern[str]:
    body = (files("agent_gate.discovery") / "data" / "cl100k_classes.json").read_bytes()
    classes = msgspec.json.decode(body, type=dict[str, str])
    return _split(*(_ranges(classes[name]) for name in ("letters", "numbers", "spaces")))


def _split(letter: str, number: str, space: str) -> re.Pattern[str]:
    """How the encoding cuts text before it merges; the arguments are insides of character classes."""
    return re.compile(
        rf"'(?i:[sdmt]|ll|ve|re)|[^\r\n{letter}{number}]?+[{letter}]++|[{number}]{{1,3}}+"
        rf"| ?[^{space}{letter}{number}]++[\r\n]*+"
        rf"|[{space}]++\Z|[{space}]*[\r\n]|[{space}]+(?![^{space}])|[{space}]"
    )


_ASCII = _split("A-Za-z", "0-9", r"\t-\r ")


def _ranges(spans: str) -> str:
    """`41-5a 61` as the inside of a character class."""
    pairs = (span.partition("-") for span in spans.split())
    return "".join(f"\\U{low:0>8}-\\U{high or low:0>8}" for low, _, high in pairs)

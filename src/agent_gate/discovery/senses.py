"""Places short texts by the meaning of their words: the sum of word vectors, compared by angle.

The vectors are package data, a row of small integers for each word of the thesaurus. A row is held as one big
integer with a lane per number, so that adding up a text's words is integer addition and needs no numeric library.
"""

from array import array
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from math import sqrt
from operator import mul
from sys import byteorder
from zlib import decompress

from agent_gate.discovery.text import MOST_KNOWN
from agent_gate.discovery.thesaurus import thesaurus

WIDTH, LANE, MIDDLE = 64, 2, 128
MOST = 200
"""So many words at most, that no lane overflows."""


class Rows(dict[str, int]):
    """The lanes of a word, made when it is first asked for; a last lane counts the word. Unknown words are 0."""

    def __init__(self, places: dict[str, int], table: bytes) -> None:
        super().__init__()
        self._places, self._table = places, table

    def __missing__(self, word: str) -> int:
        if len(self) >= MOST_KNOWN:
            self.clear()
        place = self._places.get(word)
        row = self[word] = 0 if place is None else self._row(place)
        return row

    def _row(self, place: int) -> int:
        lanes = bytearray(LANE * (WIDTH + 1))
        lanes[0 : LANE * WIDTH : LANE] = self._table[WIDTH * place : WIDTH * (place + 1)].translate(_RAISED)
        lanes[LANE * WIDTH] = 1
        return int.from_bytes(lanes, "little")


_RAISED = bytes((value + MIDDLE) % 256 for value in range(256))


class Sense:
    """A text's direction among all meanings."""

    __slots__ = ("length", "numbers")

    def __init__(self, lanes: int) -> None:
        numbers = array("H", lanes.to_bytes(LANE * (WIDTH + 1), "little"))
        if byteorder == "big":
            numbers.byteswap()
        middle = MIDDLE * numbers.pop()
        self.numbers: Sequence[int] = [number - middle for number in numbers]
        self.length: float = sqrt(sum(map(mul, self.numbers, self.numbers)))

    def likeness(self, other: "Sense") -> float:
        """The cosine of the angle; 0 where a text has no known word."""
        lengths = self.length * other.length
        return sum(map(mul, self.numbers, other.numbers)) / lengths if lengths else 0.0


@lru_cache(maxsize=16384)
def sense_of(lanes: int) -> Sense:
    """The direction of a tool's words; the same tools are asked about again and again."""
    return Sense(lanes)


def lanes(terms: Iterable[str]) -> int:
    """The sum of the words' vectors; at most `MOST` of them."""
    return sum(map(rows().__getitem__, terms))


@cache
def rows() -> Rows:
    table = decompress((files("agent_gate.discovery") / "data" / "vectors.bin").read_bytes())
    return Rows(thesaurus().places, table)

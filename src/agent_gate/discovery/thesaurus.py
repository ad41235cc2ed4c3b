"""Turns a word into the words that may stand for it: written synonyms first, then learnt relations.

Both are package data, read at the first use. The relations also know how common a word is, in the order of
their list.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from math import log
from struct import iter_unpack
from zlib import decompress

from agent_gate.discovery.stemmer import stem


class Thesaurus:
    """All words in it are stems."""

    def __init__(self, synonyms: str, related: bytes) -> None:
        self.synonyms: dict[str, set[str]] = defaultdict(set)
        self.phrases: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._read(synonyms)
        size = int.from_bytes(related[:4], "little")
        self._words = related[4 : 4 + size].decode().split("\n")
        self.places = {word: place for place, word in enumerate(self._words)}
        self._rows = list(_rows(related[4 + size :]))

    def _read(self, text: str) -> None:
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            phrase, arrow, meaning = line.partition(">")
            if arrow:
                self.phrases[tuple(map(stem, phrase.split()))] = tuple(map(stem, meaning.split()))
            members = set() if arrow else set(map(stem, line.split()))
            for member in members:
                self.synonyms[member] |= members - {member}

    def related(self, root: str) -> list[tuple[str, float]]:
        """Words of like meaning with their likeness, nearest first."""
        place = self.places.get(root)
        if place is None:
            return []
        return [
            (self._words[other], likeness / 255) for other, likeness in iter_unpack("<HB", self._rows[place])
        ]

    def rarity(self, root: str) -> float:
        """From 0 for the most common words to 1 for those that the list does not have."""
        place = self.places.get(root, len(self._words))
        return log(place + 2) / log(len(self._words) + 2)

    def meanings(self, roots: Sequence[str]) -> list[str]:
        """What the phrases in a request add to it."""
        found: dict[str, None] = {}
        for length in range(1, 5):
            for window in zip(*(islice(roots, skip, None) for skip in range(length)), strict=False):
                found.update(dict.fromkeys(self.phrases.get(window, ())))
        return list(found)


def _rows(body: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        stop = at + 1 + 3 * body[at]
        yield body[at + 1 : stop]
        at = stop


@cache
def thesaurus() -> Thesaurus:
    data = files("agent_gate.discovery") / "data"
    return Thesaurus(
        (data / "synonyms.txt").read_text("utf-8"), decompress((data / "related.bin").read_bytes())
    )

"""Turns a word into the words that may stand for it: written synonyms first, then learnt relations.

Idioms are read first, as the plain words that tools use: `throw the draft away` as `delete the draft`.

Both are package data, read at the first use. The relations also know how common a word is, in the order of
their list.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache, partial
from importlib.resources import files
from itertools import islice
from math import log
from struct import iter_unpack
from zlib import decompress

from agent_gate.discovery.stemmer import stem

GAP = r"((?:[\W_]+[\w'-]+){0,5}?)"


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


class Idioms:
    """Says of what people say in several words, and often around others, what it comes to."""

    def __init__(self, text: str) -> None:
        self._by_first: dict[str, list[tuple[re.Pattern[str], str]]] = defaultdict(list)
        for line in text.splitlines():
            said, sign, read_as = line.partition(" = ")
            if sign and not line.startswith("#"):
                for first in said.split()[0].split("|"):
                    self._by_first[first].append(_idiom(said, read_as))

    def plain(self, text: str) -> str:
        """The text with its idioms in plain words."""
        for first in dict.fromkeys(re.findall(r"\w+", text.lower())):
            for pattern, read_as in self._by_first.get(first, ()):
                text = pattern.sub(partial(_read, read_as), text)
        return text


def _idiom(said: str, read_as: str) -> tuple[re.Pattern[str], str]:
    parts = [GAP if word == "…" else rf"({word})" if "|" in word else word for word in said.split()]
    joined = r"[\W_]+".join(parts).replace(rf"[\W_]+{GAP}", GAP)
    return re.compile(rf"\b{joined}\b", re.IGNORECASE), read_as


def _read(read_as: str, found: re.Match[str]) -> str:
    """The plain words, with what stood in the gap, and the last of the words there was a choice of."""
    groups = list(found.groups())
    gap = next((group for group in groups if group and not group[0].isalnum()), "")
    chosen = next((group for group in reversed(groups) if group and group[0].isalnum()), "")
    return " ".join(read_as.replace("…", gap.strip()).replace("$", chosen).split())


@cache
def idioms() -> Idioms:
    return Idioms((files("agent_gate.discovery") / "data" / "idioms.txt").read_text("utf-8"))


@cache
def thesaurus() -> Thesaurus:
    data = files("agent_gate.discovery") / "data"
    return Thesaurus(
        (data / "synonyms.txt").read_text("utf-8"), decompress((data / "related.bin").read_bytes())
    )

"""What globs say about whole families of signatures: do they match every one of them, or none at all?

A glob is run as the set of places it can have come to, one bit each; a family is text with gaps, where a gap stands
for any text.
"""

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

TOKEN = re.compile(r"\*+|\[!?\]?[^\]]*\]|.", re.DOTALL)
GAP = None
MOST_STATES = 400

Family = Sequence[str | None]
"""Literal texts, and `GAP` where any text may stand."""

Moves = Callable[[int, str], Iterable[int]]
"""The states that a family can go to from a state by one character."""


@lru_cache(4096)
def compile_glob(pattern: str) -> Callable[[str], Any]:
    """A case-sensitive glob over the whole text, on every platform."""
    return re.compile(fnmatch.translate(pattern)).match


class Glob:
    """A pattern as an automaton: bit `i` of a state says that the first `i` tokens are behind us."""

    def __init__(self, pattern: str) -> None:
        tokens = TOKEN.findall(pattern)
        self.pattern = pattern
        self.end = 1 << len(tokens)
        self.stars = sum(1 << place for place, token in enumerate(tokens) if token[0] == "*")
        self.start = self._past_stars(1)
        self._tokens = [(1 << place, compile_glob(token)) for place, token in enumerate(tokens)]
        self._fits: dict[str, int] = {}

    def step(self, state: int, character: str) -> int:
        fits = self._fits.get(character)
        if fits is None:
            fits = sum(bit for bit, matches in self._tokens if not bit & self.stars and matches(character))
            self._fits[character] = fits
        return self._past_stars((state & fits) << 1 | state & self.stars)

    def run(self, text: str) -> int:
        """The state after `text`."""
        state = self.start
        for character in text:
            state = self.step(state, character)
        return state

    def _past_stars(self, state: int) -> int:
        return state | (state & self.stars) << 1


@lru_cache(1024)
def glob(pattern: str) -> Glob:
    return Glob(pattern)


@lru_cache(1024)
def telling(pattern: str) -> frozenset[str]:
    """Characters of which at least one stands for each way in which a character can fit the pattern."""
    codes = {ord(character) + shift for character in pattern for shift in (-1, 0, 1)}
    return frozenset(chr(code) for code in codes | {0} if 0 <= code <= 0x10FFFF)


def cover(begun: Sequence[tuple[Glob, int]], rest: Family) -> bool:
    """Whether, from these states, some glob matches whatever of the family follows; false where it is hard to tell."""
    alphabet = frozenset[str]().union(*(telling(one.pattern) for one, _ in begun))
    globs = [one for one, _ in begun]
    states = {tuple(state for _, state in begun)}
    for part in rest:
        for character in part or ():
            states = {stepped(globs, state, character) for state in states}
        if part is GAP:
            states = anything(globs, states, alphabet)
        if not states or any(not any(state) for state in states):
            return False
    return all(any(state & one.end for one, state in zip(globs, each, strict=True)) for each in states)


def stepped(globs: Sequence[Glob], states: tuple[int, ...], character: str) -> tuple[int, ...]:
    return tuple(one.step(state, character) for one, state in zip(globs, states, strict=True))


def anything(
    globs: Sequence[Glob], states: set[tuple[int, ...]], alphabet: Iterable[str]
) -> set[tuple[int, ...]]:
    """Every state that some text leads to; none at all where they are too many, or a text leads nowhere."""
    found, open_ = set(states), list(states)
    while open_:
        state = open_.pop()
        for character in alphabet:
            after = stepped(globs, state, character)
            if not any(after) or len(found) > MOST_STATES:
                return set()
            if after not in found:
                found.add(after)
                open_.append(after)
    return found


def meets(one: Glob, moves: Moves, first: int, last: int, alphabet: Iterable[str]) -> bool:
    """Whether the glob matches some text of a family, given as an automaton from state `first` to `last`."""
    characters = telling(one.pattern).union(alphabet)
    known, open_ = {first: one.start}, [(first, one.start)]
    while open_:
        state, places = open_.pop()
        for character in characters:
            after = one.step(places, character)
            for following in moves(state, character) if after else ():
                if fresh := after & ~known.get(following, 0):
                    known[following] = known.get(following, 0) | fresh
                    open_.append((following, fresh))
    return bool(known.get(last, 0) & one.end)

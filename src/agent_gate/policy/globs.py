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

LOST: tuple[int, ...] = ()

States = tuple[int, ...]
"""A state of each of several globs."""

Family = tuple[str | None, ...]
"""Literal texts, and `GAP` where any text may stand."""

Moves = Callable[[int, str], Iterable[int]]
"""The states that a family can go to from a state by one character."""


@lru_cache(4096)
def compile_glob(pattern: str) -> Callable[[str], Any]:
    """A case-sensitive glob over the whole text, on every platform."""
    return re.compile(fnmatch.translate(pattern)).match


@lru_cache(4096)
def search_glob(pattern: str) -> Callable[[str, int], Any]:
    """Finds the first place, from one on, where the glob matches a part of the text."""
    return re.compile(fnmatch.translate(pattern)[: -len(r"\Z")]).search


class Glob:
    """A pattern as an automaton: bit `i` of a state says that the first `i` tokens are behind us."""

    def __init__(self, pattern: str) -> None:
        tokens = TOKEN.findall(pattern)
        self.pattern, self.width = pattern, len(tokens)
        self.matches = compile_glob(pattern)
        self.end = 1 << len(tokens)
        self.stars = sum(1 << place for place, token in enumerate(tokens) if token[0] == "*")
        self.start = self._past_stars(1)
        self.won = self.stars & self.end >> 1
        self._tokens = [(1 << place, compile_glob(token)) for place, token in enumerate(tokens)]
        self._texts = tokens
        self._fits: dict[str, int] = {}

    def step(self, state: int, character: str) -> int:
        fits = self._fits.get(character)
        if fits is None:
            fits = sum(bit for bit, matches in self._tokens if not bit & self.stars and matches(character))
            self._fits[character] = fits
        return self._past_stars((state & fits) << 1 | state & self.stars)

    def run(self, text: str, state: int | None = None) -> int:
        """The state after `text`. What came to a later star can do all that others can, so of a long text only the
        ends, and where the tokens between two stars are found next, need a look."""
        state = self.start if state is None else state
        place = 0
        while state and len(text) - place > 3 * self.width:
            state = self._steps(state, text[place : place + self.width])
            place += self.width
            star = self._last_star(state)
            if not star or star & self.won:
                return self._past_stars(star)
            after = self._steps(state, text[place : place + self.width])
            if self._last_star(after) > star:
                state, place = after, place + self.width
                continue
            found, following = self._between(star)
            at = found(text, place) if following else None
            if at is None:
                return self._steps(self._past_stars(star), text[len(text) - self.width :])
            state, place = self._past_stars(following), at.end()
        return self._steps(state, text[place:])

    def _steps(self, state: int, text: str) -> int:
        for character in text:
            if not state:
                break
            state = self.step(state, character)
        return state

    def _last_star(self, state: int) -> int:
        stars = state & self.stars
        return 1 << stars.bit_length() >> 1

    def _between(self, star: int) -> tuple[Callable[[str, int], Any], int]:
        """The search for the tokens between this star and the next, and that star's bit; 0 where there is none."""
        first = star.bit_length()
        rest = self.stars >> first
        following = (rest & -rest) << first
        last = following.bit_length() - 1 if following else self.width
        return search_glob("".join(self._texts[first:last])), following

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


@lru_cache(4096)
def cover(begun: tuple[tuple[Glob, int], ...], rest: Family) -> bool:
    """Whether, from these states, some glob matches whatever of the family follows; false where it is hard to tell."""
    alphabet = frozenset[str]().union(*(telling(one.pattern) for one, _ in begun))
    globs = [one for one, _ in begun]
    states = open_states(globs, {tuple(state for _, state in begun)})
    for part in rest:
        for character in part or ():
            states = open_states(globs, {stepped(globs, state, character) for state in states})
        if part is GAP:
            states = anything(globs, states, alphabet)
        if LOST in states:
            return False
    return all(any(state & one.end for one, state in zip(globs, each, strict=True)) for each in states)


def open_states(globs: Sequence[Glob], states: set[States]) -> set[States]:
    """Those of the states that do not match whatever follows; `LOST` stands for all that nothing can match."""
    return {
        state if any(state) else LOST
        for state in states
        if not any(place & one.won for one, place in zip(globs, state, strict=True))
    }


def stepped(globs: Sequence[Glob], states: States, character: str) -> States:
    if states == LOST:
        return LOST
    return tuple(one.step(state, character) for one, state in zip(globs, states, strict=True))


def anything(globs: Sequence[Glob], states: set[States], alphabet: Iterable[str]) -> set[States]:
    """Every open state that some text leads to; `LOST` where a text leads nowhere, or there are too many."""
    found, waiting = set(states), list(states)
    while waiting:
        state = waiting.pop()
        after = open_states(globs, {stepped(globs, state, character) for character in alphabet}) - found
        found |= after
        waiting += after
        if LOST in after or len(found) > MOST_STATES:
            return {LOST}
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

"""`Subject`: the call that a decision is about, and the ways in which its signature could have been written."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from agent_gate.core.signature import CUT, LONGEST_VALUE, pair
from agent_gate.core.tool import Json, Tool
from agent_gate.policy.accents import composed_signature
from agent_gate.policy.globs import Glob

Pieces = tuple[tuple[str, bool], ...]
"""The arguments as a signature shows them, each with whether it may be left out."""


class Seen(NamedTuple):
    """What rules that refuse or ask see beside the signature itself: further endings of it (all that follows the name),
    and those in which some arguments may be left out."""

    endings: tuple[str, ...] = ()
    loose: tuple[Pieces, ...] = ()


NOTHING_MORE = Seen()


class Subject(msgspec.Struct):
    """Everything that a rule may look at: the tool, what it is called with, how that is signed, who calls, what its
    source knows of it, and whom the caller works for."""

    tool: Tool
    arguments: Mapping[str, Json]
    signature: str
    caller: str
    facts: Mapping[str, str] | None = None
    person: str = ""
    groups: frozenset[str] = frozenset()
    _seen: Seen | None = None

    def see(self) -> Seen:
        """How rules that refuse or ask see this call; made for the first that wants to know."""
        if self._seen is None:
            self._seen = look(self.tool, self.arguments, self.signature)
        return self._seen


def look(tool: Tool, arguments: Mapping[str, Json], signature: str) -> Seen:
    """Long values uncut, letters with their accents composed, and arguments that the tool does not declare left out
    at will: such an argument must not move the others to where a pattern does not find them."""
    if tool.definition.template is not None:
        return (
            NOTHING_MORE if signature.isascii() else Seen((composed_signature(signature)[len(tool.wire) :],))
        )
    known = arguments.keys() <= tool.declared.names
    if known and signature.isascii():
        return NOTHING_MORE
    loose = frozenset[str]() if known else tool.declared.others(arguments)
    written = list(dict.fromkeys(spelled(arguments, loose, signature)))
    return Seen(tuple(map(ending, written)), tuple(written) if loose else ())


def spelled(arguments: Mapping[str, Json], loose: frozenset[str], signature: str) -> Iterator[Pieces]:
    for longest in (LONGEST_VALUE, math.inf) if CUT in signature else (LONGEST_VALUE,):
        pieces = tuple((pair(key, arguments[key], longest), key in loose) for key in sorted(arguments))
        yield pieces
        if not all(text.isascii() for text, _ in pieces):
            yield tuple((composed_signature(text), left_out) for text, left_out in pieces)


def ending(pieces: Pieces) -> str:
    return f"({', '.join([text for text, _ in pieces])})" if pieces else ""


def matches_without(one: Glob, name: str, pieces: Pieces) -> bool:
    """Whether the glob matches a call of that name with all of the pieces but some of those that may be left out.

    `first` is where the glob can be before any piece was taken, `later` after one was.
    """
    if all(left_out for _, left_out in pieces) and (one.matches(name) or one.matches(f"{name}()")):
        return True
    first, later = one.run(f"{name}("), 0
    for text, left_out in pieces:
        taken = one.run(text, first) | one.run(text, one.run(", ", later))
        first, later = (first, later | taken) if left_out else (0, taken)
    return bool(one.step(later, ")") & one.end)

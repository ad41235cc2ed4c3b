"""One spelling for letters with accents, which look alike and often mean the same to a tool."""

import unicodedata
from collections.abc import Mapping
from typing import Any

LONG = 64
"""Putting a run of marks in order takes time that grows with its square; a longer one is ordered before."""


def composed(value: Any) -> Any:
    """The value with its accents composed (NFC), also inside lists and objects."""
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", ordered(value))
    if isinstance(value, Mapping):
        return {composed(key): composed(held) for key, held in value.items()}
    return [composed(held) for held in value] if isinstance(value, list | tuple) else value


def composed_signature(signature: str) -> str:
    """A signature with its accents composed; a value that begins with a mark does not change the `=` before it."""
    return "=".join(map(composed, signature.split("=")))


def ordered(text: str) -> str:
    """The text with its long runs of marks in canonical order. Every so many characters are looked at: a long run
    has one of them."""
    parts: list[str] = []
    done = 0
    for place in range(0, len(text), LONG):
        if place < done or not is_mark(text[place]):
            continue
        start, end = place, place + 1
        while start > done and is_mark(text[start - 1]):
            start -= 1
        while end < len(text) and is_mark(text[end]):
            end += 1
        if end - start > LONG:
            parts += text[done:start], in_order(text[start:end])
            done = end
    return "".join([*parts, text[done:]])


def in_order(marks: str) -> str:
    apart = [one for mark in marks for one in decomposed(mark)]
    return "".join(sorted(apart, key=unicodedata.combining))


def is_mark(character: str) -> bool:
    """Whether it changes its place among others; some only do once they are taken apart."""
    return unicodedata.combining(decomposed(character)[0]) > 0


def decomposed(character: str) -> str:
    return unicodedata.normalize("NFD", character)

"""Turns words into roots: Porter's stemming algorithm for English; other words are left alone."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The common root of an English word's forms (Porter's algorithm); other words and `news`, no plural, are left alone."""
    if len(word) < 3 or word == "news" or not (word.isascii() and word.isalpha()):
        return word
    for step in (_plural, _past, _final_y, _long_suffixes, _medium_suffixes, _short_suffixes, _tidy):
        word = step(word)
    return word


def _is_consonant(word: str, at: int) -> bool:
    letter = word[at]
    if letter == "y":
        return at == 0 or not _is_consonant(word, at - 1)
    return letter not in "aeiou"


def _measure(root: str) -> int:
    """How many times a vowel is followed by a consonant."""
    shape = [_is_consonant(root, at) for at in range(len(root))]
    return sum(1 for first, second in pairwise(shape) if not first and second)


def _has_vowel(root: str) -> bool:
    return any(not _is_consonant(root, at) for at in range(len(root)))


def _ends_short(root: str) -> bool:
    """Consonant, vowel, consonant at the end, the last one not w, x or y."""
    if len(root) < 3 or root[-1] in "wxy":
        return False
    return (
        _is_consonant(root, len(root) - 3)
        and not _is_consonant(root, len(root) - 2)
        and _is_consonant(root, len(root) - 1)
    )


def _plural(word: str) -> str:
    for suffix, replacement in (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")):
        if word.endswith(suffix):
            return word[: -len(suffix)] + replacement
    return word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        root = word[: -len(suffix)]
        if word.endswith(suffix) and _has_vowel(root):
            return _restore(root)
    return word


def _restore(root: str) -> str:
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if (
        len(root) > 1
        and root[-1] == root[-2]
        and _is_consonant(root, len(root) - 1)
        and root[-1] not in "lsz"
    ):
        return root[:-1]
    if _measure(root) == 1 and _ends_short(root):
        return root + "e"
    return root


def _final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and _has_vowel(word[:-1]) else word


_LONG = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble",
    "alli": "al", "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate",
    "alism": "al", "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive",
    "biliti": "ble", "logi": "log",
}  # fmt: skip
_MEDIUM = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_SHORT = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


def _swap(word: str, table: Mapping[str, str]) -> str:
    for suffix in sorted(table, key=len, reverse=True):
        if word.endswith(suffix):
            root = word[: -len(suffix)]
            return root + table[suffix] if _measure(root) > 0 else word
    return word


def _long_suffixes(word: str) -> str:
    return _swap(word, _LONG)


def _medium_suffixes(word: str) -> str:
    return _swap(word, _MEDIUM)


def _short_suffixes(word: str) -> str:
    if word.endswith(("sion", "tion")):
        return word[:-3] if _measure(word[:-3]) > 1 else word
    for suffix in sorted(_SHORT, key=len, reverse=True):
        if word.endswith(suffix):
            return word[: -len(suffix)] if _measure(word[: -len(suffix)]) > 1 else word
    return word


def _tidy(word: str) -> str:
    if word.endswith("e") and (
        _measure(word[:-1]) > 1 or (_measure(word[:-1]) == 1 and not _ends_short(word[:-1]))
    ):
        word = word[:-1]
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word

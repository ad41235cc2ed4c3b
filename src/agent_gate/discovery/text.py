"""Turns text into terms: words split at case, digits and punctuation, without fillers, stemmed."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain

from agent_gate.discovery.stemmer import stem

_WORD = re.compile(r"[^\W\d_]+|\d+")
_HUMP = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)

_GAPS = bytes(code if chr(code).isalnum() and code < 128 else 32 for code in range(256))
MOST_KNOWN = 65536

STOP_WORDS = """
    a about above after again all also am an and any anyone anything are as at be because been before being below
    between both but by can cannot could did do does doing don down each else ever every few for from further had
    has have having he her here hers him his how i if in into is it its itself just let like ll may me might more
    most much must my myself need no nor not now of off on once only or other our ours out over own please re really
    s same she should so some someone something such t than thank thanks that the their theirs them then there these
    they thing things this those through to too under until up upon us ve very want was we were what when where which
    while who whom why will with within without would you your yours d m hi hello hey chatgpt okay ok lot help able
    going know tell give recently currently interested curious looking wondering possible assist assistance provide
    provides kindly
"""
STOP = frozenset(STOP_WORDS.split())
FAINT_WORDS = """
    detailed specific comprehensive various including different certain particular upcoming recent best good great
    interesting relevant related popular top several many information info details based multiple type kind way
    today tomorrow day week month year example online easily quick perfect unique high quality available complete
    full
"""
FAINT = frozenset(map(stem, FAINT_WORDS.split()))
"""Words that say how, not what; they count for less."""


ACTION_WORDS = """
    add analyze answer append apply approve archive assign attach book build buy calculate call cancel chart check
    choose clear click clone close collect combine comment commit compare compile compose compute configure connect
    convert copy count create crop delete deploy describe detect disable display download draft drag draw drop
    duplicate edit email enable encode enter erase estimate evaluate execute explain export extract fetch fill filter
    find fix forecast fork format forward generate get give hide import insert inspect install invite join launch link
    list load locate lock log look lookup make mark merge message modify monitor move navigate notify open order
    organize parse patch pause pay pick place plan play plot post predict press print process publish pull push query
    read record remember remind remove rename render replace reply report request reserve reset resize resolve restart
    restore retrieve return revert review rewrite run save scan schedule scrape search select send set share show sign
    sort split start stop store submit subscribe summarize switch sync tag take tell test track transcribe transfer
    transform translate trigger turn type undo unlock update upload validate verify view visit visualize wait watch
    write
"""
ACTIONS = frozenset(map(stem, ACTION_WORDS.split()))
"""What is done, rather than what it is done to."""


def words(text: str) -> list[str]:
    """Lower-case words; `createIssue`, `create_issue` and `HTTPServer2` come apart, unspaced scripts into pairs."""
    return list(chain.from_iterable(map(_WORDS.__getitem__, _runs(text))))


def terms(text: str) -> list[str]:
    """The words that carry meaning, stemmed."""
    return list(chain.from_iterable(map(_TERMS.__getitem__, _runs(text))))


def prose(text: str) -> list[str]:
    """The terms of running text, in which `BibTeX` is one word as well as three."""
    return list(chain.from_iterable(map(_PROSE.__getitem__, _runs(text))))


def _runs(text: str) -> Sequence[bytes]:
    """What stands between gaps; finding these is fast, and what they come apart into is remembered."""
    if text.isascii():
        return text.encode("ascii").translate(_GAPS).split()
    return [run.encode("utf-8", "replace") for run in _WORD.findall(text)]


class _Known(dict[bytes, Sequence[str]]):
    """What runs of text come apart into; texts share most of their words."""

    def __init__(self, take: Callable[[str], Sequence[str]]) -> None:
        super().__init__()
        self._take = take

    def __missing__(self, run: bytes) -> Sequence[str]:
        if len(self) >= MOST_KNOWN:
            self.clear()
        found = self[run] = self._take(run.decode())
        return found


def _words_of(run: str) -> Sequence[str]:
    return [word for part in _WORD.findall(run) for word in _humps(part)]


def _humps(part: str) -> Sequence[str]:
    if not part.isascii():
        return _foreign(part.lower())
    if part.islower() or not part.isalpha():
        return [part]
    return [hump.lower() for hump in _HUMP.findall(part)]


def _foreign(part: str) -> Sequence[str]:
    if len(part) == 1 or not _UNSPACED.search(part):
        return [part]
    return [part[at : at + 2] for at in range(len(part) - 1)]


def _terms_of(run: str) -> Sequence[str]:
    return [stem(word) for word in _words_of(run) if word not in STOP]


def _prose_of(run: str) -> Sequence[str]:
    whole = [stem(run.lower())] if run.isascii() and run.isalpha() and len(_words_of(run)) > 1 else []
    return [*_terms_of(run), *whole]


_WORDS, _TERMS, _PROSE = _Known(_words_of), _Known(_terms_of), _Known(_prose_of)


@lru_cache(maxsize=65536)
def grams(word: str) -> frozenset[str]:
    """The letter triples of a word with its edges marked; what related spellings and languages share."""
    padded = f"^{word}$"
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))

"""Turns a request in plain words into the tools that serve it, best first.

Each tool is weighed once into terms with an impact (fields count differently, long ones less per word), apart
from any other tool, so a changed catalog costs only what changed. A request's words look through synonyms and
related words; words that no tool has fall back to shared letter triples. A request of several parts is ranked
part by part, so that each is served.
"""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from itertools import islice, takewhile
from math import log, sqrt
from operator import eq
from typing import NamedTuple

from agent_gate.core.tool import Tool
from agent_gate.discovery.document import Document, owned, weigh
from agent_gate.discovery.semantic import Semantic, Space
from agent_gate.discovery.signals import SIGNALS, RankedRequest
from agent_gate.discovery.stemmer import stem
from agent_gate.discovery.text import ACTIONS, FAINT, grams, prose, terms, words
from agent_gate.discovery.thesaurus import idioms, thesaurus
from agent_gate.discovery.verbs import asked, strangeness

COMMON, FAINTNESS = 0.7, 0.5
SYNONYM, PHRASE, SLIP, ALIKE = 0.7, 0.75, 0.8, 0.275
FLOOR = 0.42
COVERAGE, COVERED, NAME = 0.45, 1.3, 0.5
OTHER_VERB = 0.4
PART = 0.9
FAINT_ECHO = 0.3
ENOUGH_SAID = 0.125
SHORTLIST, ENOUGH, CROWDED = 60, 300, 300
LONGEST_TEXT = 2000
LONGEST_QUERY, MOST_SLOTS, MOST_OPENED = 48, 24, 4096

_JOINT = re.compile(
    r" ?(?:;|(?<!\S)\d[.)](?= )|,? (?:and )?then\b|,? after(?:wards| that)\b,?|, ?(?:and )?| and ) ?",
    re.IGNORECASE,
)
_HARD = re.compile(r";|\d|then|after", re.IGNORECASE)

_SUM = re.compile(r"\d\s*(?:[+*×÷^]|\s[-/]\s)\s*\d")
"""`17 * 23` asks to be calculated; `2026-11-17` and `3/4` may be a date or a share."""
_ASIDE = re.compile(
    r"(?:(?:i|we|please|need|want|find|search|look|is|are|there|use|which|what|me|to|for|a|an|any|the|mcp) )*"
    r"tools?(?: (?:that|which|to|for|can|could|lets?|allows?|helps?|me|us|you|i))+ (?=\S)",
    re.IGNORECASE,
)
"""`find a tool that lets me`: a request for a tool asks for what the tool does."""


class Hit(NamedTuple):
    """A tool and how well it serves the request, from 0 to 1."""

    tool: Tool
    score: float


class Ranked(NamedTuple):
    """Score by place in the index, the best at 1; and whether any of it serves the request, or is only the least bad."""

    scores: dict[int, float]
    served: bool


class Slot(NamedTuple):
    """One word of a request: the terms that may stand for it, what each is worth, and the most of these."""

    worths: Mapping[str, float]
    most: float


class Rarities(dict[str, float]):
    """How telling each term is: rare among these tools, and not an everyday word. Reckoned when first asked for."""

    def __init__(self, postings: Mapping[str, Sequence[int]], size: int) -> None:
        super().__init__()
        self._postings, self._size = postings, size

    def __missing__(self, each: str) -> float:
        found = len(self._postings[each])
        rarity = log(1 + (self._size - found + 0.5) / (found + 0.5))
        rarity *= 1 - COMMON + COMMON * thesaurus().rarity(each)
        rarity = self[each] = rarity * FAINTNESS if each in FAINT else rarity
        return rarity


class Index:
    """Immutable after it is built; the same for any order of the same tools."""

    def __init__(
        self,
        tools: Sequence[Tool],
        titles: Mapping[str, str],
        previous: "Index | None" = None,
        semantic: Semantic | None = None,
    ) -> None:
        known = {document.tool.id: document for document in previous.documents} if previous else {}
        self.documents: list[Document] = [
            _reuse(known.get(tool.id), tool, titles.get(tool.namespace, ""))
            for tool in sorted(tools, key=lambda tool: tool.id)
        ]
        self.postings: Mapping[str, array[int]] = _inverted(self.documents)
        self.rarities = Rarities(self.postings, len(self.documents))
        self._opened: dict[str, Mapping[int, int]] = {}
        self._crowd = max(20, len(self.documents) // 50)
        self._grams: dict[str, list[str]] | None = None
        self._owned: Mapping[str, Sequence[int]] | None = None
        self._space = self._place(semantic)

    def _place(self, semantic: Semantic | None) -> Space | None:
        return semantic.place([document.sentence for document in self.documents]) if semantic else None

    def search(self, query: str, limit: int) -> list[Hit]:
        """The best tools by falling score, equal ones by id; each part of the request is served. None where none fits."""
        known: dict[str, Slot] = {}
        aside = _ASIDE.match(query)
        query = query[aside.end() :] if aside else query
        query = idioms().plain(query[:LONGEST_TEXT])
        query = f"calculate {query}" if _SUM.search(query) else query
        whole, *parts = (self._ranked(part, known) for part in (query, *split(query)))
        if not (whole.served or any(part.served for part in parts)):
            return []
        best = whole.scores
        for part in parts:
            for place, score in part.scores.items():
                best[place] = max(PART * score, best.get(place, 0.0))
        chosen = nlargest(limit, ((round(score, 4), -place) for place, score in best.items() if score > 0))
        return [Hit(self.documents[-place].tool, score) for score, place in chosen]

    def _ranked(self, query: str, known: dict[str, Slot]) -> Ranked:
        """`known` are the words of the whole request."""
        matched = self._lexical(query, known)
        found = _scaled(matched)
        cosines = self._space.similarities(query) if self._space is not None else ()
        asked_for = RankedRequest(query, self.documents, found, cosines, self._names())
        totals = dict(found)
        for signal in SIGNALS:
            for place, rated in signal.rate(asked_for).items():
                totals[place] = totals.get(place, 0.0) + signal.weight * rated
        served = self._say_enough(query, known, matched) or any(signal.vouch(asked_for) for signal in SIGNALS)
        return Ranked(_scaled(totals), served)

    def _names(self) -> Mapping[str, Sequence[int]]:
        if self._owned is None:
            self._owned = owned(self.documents)
        return self._owned

    def _say_enough(self, query: str, known: dict[str, Slot], matched: Mapping[int, float]) -> bool:
        """Whether the best match by words is more than the chance that some word of a long request is somewhere."""
        rarest = log(1 + (len(self.documents) - 0.5) / 1.5)
        said = len(self._slots(query, known))
        return max(matched.values(), default=0.0) >= ENOUGH_SAID * rarest * sqrt(said)

    def _lexical(self, query: str, known: dict[str, Slot]) -> dict[int, float]:
        """Sum over the words, the telling ones first; later words only rank the tools that were found by then."""
        totals: dict[int, float] = {}
        covered: dict[int, float] = {}
        slots = sorted(self._slots(query, known), key=lambda slot: -slot.most)[:MOST_SLOTS]
        narrow = False
        for slot in slots:
            for place, score in self._collect(slot, totals if narrow else None).items():
                totals[place] = totals.get(place, 0.0) + score
                covered[place] = covered.get(place, 0.0) + min(slot.most, score * COVERED)
            if len(totals) > ENOUGH:
                totals, narrow = _best(totals), True
        mass = sum(slot.most for slot in slots)
        said, wanted = _strongest(slots), asked(query)
        fits = [1 - OTHER_VERB * strangeness(wanted, does) for does in range(16)]
        return {
            place: score
            * (1 - COVERAGE + COVERAGE * covered[place] / mass)
            * (1 + NAME * self._share(place, said))
            * fits[self.documents[place].does]
            for place, score in _best(totals).items()
        }

    def _collect(self, slot: Slot, among: Mapping[int, float] | None) -> dict[int, float]:
        """The best that any variant of one word does for each tool."""
        found: dict[int, float] = {}
        for each, worth in slot.worths.items():
            scale = worth / 255
            for place, impact in self._impacts(each, worth / slot.most, among):
                score = scale * impact
                if score > found.get(place, 0.0):
                    found[place] = score
        return found

    def _impacts(
        self, each: str, part: float, among: Mapping[int, float] | None
    ) -> Iterable[tuple[int, int]]:
        """The tools that have a term and its impact in each; of a common term or a faint one, where it says most."""
        opened = self._opened.get(each)
        if opened is None:
            if len(self._opened) >= MOST_OPENED:
                self._opened.clear()
            packed = self.postings[each]
            strong = sorted(packed, key=_by_impact) if len(packed) > SHORTLIST else packed
            opened = self._opened[each] = {entry >> 8: entry & 255 for entry in strong}
        if among is None:
            return opened.items() if part == 1.0 else islice(opened.items(), int(CROWDED * part))
        if len(among) < len(opened):
            return [(place, opened[place]) for place in among if place in opened]
        return [(place, impact) for place, impact in opened.items() if place in among]

    def _share(self, place: int, said: Mapping[str, float]) -> float:
        """How much of a tool's name the request speaks of."""
        name = self.documents[place].name
        spoken = sum(min(said[each], self.rarities[each]) for each in name if each in said)
        return spoken / sum(self.rarities[each] for each in name) if spoken else 0.0

    def _slots(self, query: str, known: dict[str, Slot]) -> list[Slot]:
        own = list(dict.fromkeys(prose(query)))[:LONGEST_QUERY]
        extra = thesaurus().meanings([stem(word) for word in words(query)[: 4 * LONGEST_QUERY]])
        known |= {each: self._slot(each, 1.0, self._variants(each)) for each in own if each not in known}
        return [known[each] for each in own] + [
            self._slot(each, PHRASE, {each: 1.0}) for each in extra if each not in own
        ]

    def _slot(self, own: str, weight: float, variants: Mapping[str, float]) -> Slot:
        """A variant is never worth more than the word that it stands for; faint echoes of common words are dropped."""
        cap = self.rarities[own] if own in self.postings else None
        worths = {}
        for each, likeness in variants.items():
            posting = self.postings.get(each)
            if posting is None or (likeness < FAINT_ECHO and len(posting) > self._crowd):
                continue
            rarity = self.rarities[each]
            worths[each] = weight * likeness * (rarity if cap is None else min(rarity, cap))
        return Slot(worths, max(worths.values(), default=0.0))

    def _variants(self, each: str) -> dict[str, float]:
        found = {each: 1.0}
        found |= dict.fromkeys(sorted(thesaurus().synonyms.get(each, ())), SYNONYM)
        for other, likeness in thesaurus().related(each):
            weight = (likeness - FLOOR) / (1 - FLOOR)
            if weight > found.get(other, 0.05):
                found[other] = weight
        if each not in self.postings and each not in thesaurus().places:
            for other, likeness in self._similar(each):
                found[other] = max(found.get(other, 0.0), likeness)
        return found

    def _similar(self, each: str) -> list[tuple[str, float]]:
        """Indexed terms that are a slip away from a word that no tool has, or share most letter triples with it."""
        if len(each) < 4:
            return []
        mine = grams(each)
        shared = Counter(other for gram in mine for other in self._by_gram().get(gram, ()))
        scored = (
            (_alike(each, other, n / (len(mine) + len(grams(other)))), other) for other, n in shared.items()
        )
        return [(other, score) for score, other in nlargest(4, scored) if score >= ALIKE]

    def _by_gram(self) -> dict[str, list[str]]:
        if self._grams is None:
            found: dict[str, list[str]] = defaultdict(list)
            for each in self.postings:
                for gram in grams(each):
                    found[gram].append(each)
            self._grams = found
        return self._grams


def _alike(word: str, other: str, shared: float) -> float:
    """How surely one word was meant for another that shares this part of all their letter triples."""
    return SLIP if _slipped(word, other) else shared


def _slipped(word: str, other: str) -> bool:
    """Whether one letter too many, missing, wrong or swapped with the next makes the difference."""
    if abs(len(word) - len(other)) > 1:
        return False
    same = sum(takewhile(bool, map(eq, word, other)))
    mine, its = word[same:], other[same:]
    wrong = len(word) > 4 and mine[1:] == its[1:]
    swapped = mine[:2] == its[1::-1] and mine[2:] == its[2:]
    return wrong or swapped or mine[1:] == its or mine == its[1:]


def _inverted(documents: Sequence[Document]) -> dict[str, "array[int]"]:
    """For each term the tools that have it, as the place in the index and, in the last eight bits, its impact."""
    postings: dict[str, array[int]] = {}
    for place, document in enumerate(documents):
        base = place << 8
        for each, impact in zip(document.terms, document.impacts, strict=True):
            try:
                postings[each].append(base | impact)
            except KeyError:
                postings[each] = array("L", (base | impact,))
    return postings


def _by_impact(entry: int) -> int:
    return -(entry & 255)


def _best(totals: dict[int, float]) -> dict[int, float]:
    """The shortlist, and what is no worse than its last."""
    if len(totals) <= SHORTLIST:
        return totals
    bar = nlargest(SHORTLIST, totals.values())[-1]
    return {place: total for place, total in totals.items() if total >= bar}


def _scaled(scores: Mapping[int, float]) -> dict[int, float]:
    top = max(scores.values(), default=1.0)
    return {place: score / top for place, score in scores.items()}


def _strongest(slots: Iterable[Slot]) -> dict[str, float]:
    said: dict[str, float] = {}
    for slot in slots:
        for each, worth in slot.worths.items():
            said[each] = max(worth, said.get(each, 0.0))
    return said


def _reuse(known: Document | None, tool: Tool, title: str) -> Document:
    if (
        known
        and known.tool.pin == tool.pin
        and known.title == title
        and known.tool.namespace == tool.namespace
    ):
        return known if known.tool is tool else known._replace(tool=tool)
    return weigh(tool, title)


def split(query: str) -> list[str]:
    """The parts of a request that asks for several things; empty when it asks for one."""
    # Runs of blanks are one: the joints would try every way to divide them.
    text, parts, start = " ".join(query[:2000].split()), [], 0
    for joint in _JOINT.finditer(text):
        if _HARD.search(joint.group()) or _begins_action(text[joint.end() :]):
            parts.append(text[start : joint.start()])
            start = joint.end()
    parts.append(text[start:])
    useful = [part for part in parts if terms(part)]
    return _rounded(useful[:6]) if len(useful) > 1 else []


def _rounded(parts: Sequence[str]) -> list[str]:
    """A part that names nothing (`and save it`) is about what the part before it names."""
    found: list[str] = []
    for part in parts:
        about = [] if not found or not ACTIONS.issuperset(terms(part)) else words(found[-1])
        found.append(" ".join([part, *(word for word in about if stem(word) not in ACTIONS)]))
    return found


def _begins_action(text: str) -> bool:
    first = words(text[:40])[:1]
    return bool(first) and stem(first[0]) in ACTIONS

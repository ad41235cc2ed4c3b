"""Turns a tool into what the index keeps of it: weighed terms, the sense of its words, and what kind of doing it is.

Each tool is weighed apart from any other, so a changed catalog costs only what changed.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from agent_gate.core.tool import Tool
from agent_gate.discovery.senses import lanes
from agent_gate.discovery.stemmer import stem
from agent_gate.discovery.text import ACTIONS, prose, terms, words
from agent_gate.discovery.verbs import done

FIELDS: Mapping[str, tuple[float, float]] = {
    "name": (2.0, 3.0),
    "namespace": (1.5, 1.0),
    "gist": (1.1, 10.0),
    "description": (0.75, 25.0),
    "arguments": (0.8, 5.0),
    "argument_texts": (0.4, 25.0),
    "server": (0.25, 6.0),
}
"""For each field its weight and its usual length in terms."""

BACKGROUND = ("server", "argument_texts", "description")
FOREGROUND = ("gist", "arguments", "namespace", "name")
SATURATION, LENGTH = 1.3, 0.6
MEANT, SHORTEST = 30, 20
SHARED = 3
"""So many tools of a server must begin with a word that this is a product's name."""

_SENTENCE = re.compile(r"[.!?](?:\s|\Z)|\n")


class Document(NamedTuple):
    """A tool as the index sees it: its terms with an impact of 0 to 255 each, the terms of its name, its verb and its sense."""

    tool: Tool
    title: str
    terms: tuple[str, ...]
    impacts: bytes
    name: tuple[str, ...]
    does: int
    lanes: int

    @property
    def sentence(self) -> str:
        """The tool's text for the encoder."""
        tool = self.tool
        arguments = ", ".join(" ".join(words(name)) for name in list(_arguments(tool))[:12])
        return f"{tool.namespace} {' '.join(words(tool.name))}. {tool.description[:250]} {arguments}"


def weigh(tool: Tool, title: str) -> Document:
    """A tool's terms and what each says about it, summed over the fields that have it."""
    fields = _fields(tool, title)
    weights: dict[str, float] = {}
    for key in BACKGROUND:
        weights.update(dict.fromkeys(fields[key], _share(key, len(fields[key]))))
    for key in FOREGROUND:
        share = _share(key, len(fields[key]))
        for each in fields[key]:
            weights[each] = weights.get(each, 0.0) + share
    for each in _joined(tool.name):
        weights[each] = share
    impacts = bytes(map(_IMPACTS.__getitem__, weights.values()))
    name = tuple(dict.fromkeys(fields["name"]))
    meant = lanes(islice(chain(name, name, fields["gist"], fields["description"]), MEANT))
    return Document(tool, title, tuple(weights), impacts, name, done(tool), meant)


class _Impacts(dict[float, int]):
    """What a sum of shares comes to, from 0 to 255; few sums differ."""

    def __missing__(self, worth: float) -> int:
        if len(self) >= 65536:
            self.clear()
        impact = self[worth] = int(255 * worth / (SATURATION + worth))
        return impact


_IMPACTS = _Impacts()


@lru_cache(maxsize=4096)
def _share(key: str, length: int) -> float:
    """What a term of a field is worth; in a long field less."""
    weight, usual = FIELDS[key]
    return weight / (1 - LENGTH + LENGTH * length / usual)


def _fields(tool: Tool, title: str) -> dict[str, Sequence[str]]:
    text = tool.description.lstrip()
    end = _SENTENCE.search(text, SHORTEST, 400)
    cut = end.end() if end else min(len(text), 400)
    arguments = _arguments(tool)
    said = " ".join(_described(islice(arguments.values(), 40)))
    return {
        "name": terms(tool.name),
        "namespace": _short_terms(tool.namespace),
        "gist": prose(text[:cut]),
        "description": prose(text[cut : cut + 200]),
        "arguments": terms(" ".join(map(str, islice(arguments, 40)))),
        "argument_texts": prose(said[:200]),
        "server": _short_terms(title[:300]),
    }


def owned(documents: Sequence[Document]) -> Mapping[str, Sequence[int]]:
    """The tools that the name of a server stands for, or of a product that some of its tools begin with, by their
    place."""
    found: dict[str, list[int]] = defaultdict(list)
    fronts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, document in enumerate(documents):
        space = document.tool.namespace
        for name in set(map(stem, words(space))):
            found[name].append(place)
        first = words(document.tool.name)[:1]
        if first:
            fronts[space, stem(first[0])].append(place)
    for (_, name), places in fronts.items():
        if len(places) >= SHARED and name not in ACTIONS:
            found[name] = sorted({*found[name], *places})
    return found


def _arguments(tool: Tool) -> Mapping[str, object]:
    properties = tool.input_schema.get("properties")
    return properties if isinstance(properties, dict) else {}


@lru_cache(maxsize=4096)
def _short_terms(text: str) -> tuple[str, ...]:
    return tuple(prose(text))


def _joined(name: str) -> list[str]:
    """`AusSurfReport` is also looked for as one word."""
    return [stem(name.lower())] if name.isalnum() and not name.islower() else []


def _described(schemas: Iterable[object]) -> Iterable[str]:
    for schema in schemas:
        said = schema.get("description") if isinstance(schema, dict) else None
        if isinstance(said, str):
            yield said[:200]

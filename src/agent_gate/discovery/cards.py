"""Turns a tool into a `ChoiceCard`: what an agent reads of it before it decides to use it.

A card never carries a schema, in any form; `has_schema` only says that there is one. Its prompt form is one
line of at most `CAP` tokens. Only the description is ever shortened to get there; a tool whose card is still
too long is left out of discovery with the reason.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Literal

import msgspec

from agent_gate.core.tool import Tool
from agent_gate.discovery.tokens import LONGEST, count
from agent_gate.discovery.verbs import has_effects
from agent_gate.errors import CatalogError

AIM, CAP = 60, 80
MAX_ID, MAX_NAME, MAX_TAGS, MAX_TAG = 240, 64, 5, 24
ELLIPSIS = "…"
BREAKPOINT = "__cache_breakpoint__"

_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|\Z)")
_STRUCTURED = re.compile(r"[\[\]{}<>\"'=,;]|://")

CardKind = Literal["tool", "agent", "skill", "internal"]


class ChoiceCard(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON form of a card; these fields and no others."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...] = ()
    kind: CardKind = "tool"
    namespace: str = ""
    has_schema: bool = False
    cost_hint: float = 0.0
    side_effects: bool = False
    score: float | msgspec.UnsetType = msgspec.UNSET


MARKER = ChoiceCard(id=BREAKPOINT, name=BREAKPOINT, description="", kind="internal")


def render(card: ChoiceCard) -> str:
    """The prompt form. The score is never part of it."""
    parts = [f"{card.id} ({card.kind})"]
    if card.description:
        parts.append(card.description)
    if card.tags:
        parts.append(f"[{', '.join(card.tags)}]")
    if card.cost_hint > 0:
        parts.append(f"cost={card.cost_hint:g}")
    if card.side_effects:
        parts.append("side-effects")
    return " ".join(parts)


def build(tool: Tool) -> ChoiceCard:
    """The card of a tool, within the budget; `CatalogError` when even an empty description is too long."""
    definition = tool.definition
    card = ChoiceCard(
        id=tool.id,
        name=tool.name[:MAX_NAME],
        description=one_line(definition.description or definition.title),
        tags=tidy_tags(definition.tags),
        namespace=tool.namespace,
        has_schema=bool(definition.input_schema.get("properties")),
        cost_hint=_cost(definition.meta.get("cost_hint")),
        side_effects=has_effects(tool),
    )
    return shorten(card)


def shorten(card: ChoiceCard) -> ChoiceCard:
    """Truncate the description until the card meets `AIM`, or `CAP` where the rest of it is already long."""
    if count(render(card), AIM) <= AIM:
        return card
    bare = msgspec.structs.replace(card, description="")
    taken = count(render(bare))
    if taken > CAP:
        raise CatalogError(
            f"The card of {card.id} needs {taken} tokens without its description; at most {CAP} are allowed. "
            "Give the tool a shorter name or fewer tags."
        )
    aim = AIM if taken <= AIM * 3 // 4 else CAP
    for budget in range(aim - taken, 0, -1):
        short = msgspec.structs.replace(card, description=truncate(card.description, budget))
        if count(render(short), aim) <= aim:
            return short
    return bare


def truncate(text: str, budget: int) -> str:
    """The whole text if it fits, else its longest run of whole sentences that does, else a cut ending in `…`."""
    if budget <= 0:
        return ""
    window = text[: (budget + 1) * LONGEST]
    if len(window) == len(text) and count(text, budget) <= budget:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(window)]
    fitting = bisect_right(ends, budget, key=lambda end: count(window[:end], budget))
    if fitting:
        return window[: ends[fitting - 1]]
    size = bisect_right(
        range(1, len(window) + 1), budget - 1, key=lambda size: count(window[:size], budget - 1)
    )
    while size and count(window[:size].rstrip() + ELLIPSIS, budget) > budget:
        size -= 1
    return window[:size].rstrip() + ELLIPSIS


def one_line(text: str) -> str:
    """The text as one line without control, direction-changing or invisible characters."""
    window = text[: CAP * LONGEST].encode("utf-8", "replace").decode()
    return _BLANKS.sub(" ", _INVISIBLE.sub("", window)).strip()


def tidy_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Sorted, unique, at most five, each one short line; what looks like data or an address is dropped."""
    lines = (one_line(str(tag)) for tag in tags)
    return tuple(
        sorted({line[:MAX_TAG].strip() for line in lines if line and not _STRUCTURED.search(line)})[:MAX_TAGS]
    )


def _cost(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value > 0:
        return float(value)
    return 0.0


@dataclass(frozen=True, slots=True)
class Deck:
    """The cards of a catalog by tool id, and the tools left out with the reason."""

    cards: Mapping[str, ChoiceCard]
    left_out: Mapping[str, str]
    sources: Mapping[str, Tool]

    @classmethod
    def build(cls, tools: Iterable[Tool], previous: "Deck | None" = None) -> "Deck":
        """Cards of tools whose definition did not change are taken over, so each is counted once."""
        cards: dict[str, ChoiceCard] = {}
        left_out: dict[str, str] = {}
        sources = {tool.id: tool for tool in tools}
        for id_, tool in sources.items():
            known = previous.sources.get(id_) if previous else None
            if previous and known and id_ in previous.cards and _same(known, tool):
                cards[id_] = previous.cards[id_]
                continue
            try:
                cards[id_] = build(tool)
            except CatalogError as error:
                left_out[id_] = error.message
        return cls(cards, left_out, sources)


def _same(one: Tool, other: Tool) -> bool:
    if one.definition is other.definition:
        return True
    mine, theirs = one.definition, other.definition
    return one.pin == other.pin and (mine.tags, mine.traits, mine.meta) == (
        theirs.tags,
        theirs.traits,
        theirs.meta,
    )

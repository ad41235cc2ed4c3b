"""A request for a figure over records (`how many orders per month`) is served by tools that run queries.

Such a request speaks of what the records are about, and the tool only of the query, so they share no word.
"""

import re
from collections.abc import Mapping

from agent_gate.discovery.document import Document
from agent_gate.discovery.signals.signal import RankedRequest, Signal
from agent_gate.discovery.text import words
from agent_gate.discovery.verbs import CREATE, DELETE, UPDATE

FIGURE = re.compile(
    r"\b(how many|number of|count|average|mean|median|sum of|total|percentage of|share of|group(ed)? by|"
    r"(top|bottom|first|last) (\d+|three|five|ten|twenty|hundred)|most|least|highest|lowest|"
    r"(per|by|each) (day|week|month|quarter|year|status|category|type|region|country|customer|user|product))\b",
    re.IGNORECASE,
)
NAMES = frozenset({"query", "sql", "aggregate", "esql", "bigquery", "mql"})
WORDS = frozenset({"sql", "aggregation"})
NOT = frozenset(
    {"explain", "plan", "validate", "save", "saved", "history", "cancel", "list", "create", "builder"}
)

CHANGES, WRITES = CREATE | UPDATE | DELETE, 0.5
"""A query that changes records tells no figure, though its tool may be the only one."""


def rate(asked: RankedRequest) -> Mapping[int, float]:
    if not FIGURE.search(asked.query[:400]):
        return {}
    return {
        place: WRITES if document.does & CHANGES else 1.0
        for place, document in enumerate(asked.documents)
        if _queries(document)
    }


def _queries(document: Document) -> bool:
    name = frozenset(words(document.tool.name))
    if not NOT.isdisjoint(name):
        return False
    return not NAMES.isdisjoint(name) or not WORDS.isdisjoint(words(document.tool.description[:80]))


def vouch(asked: RankedRequest) -> bool:
    return bool(rate(asked))


FIGURES = Signal("figures", 0.7, rate, vouch)

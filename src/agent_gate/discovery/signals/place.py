"""A request that names a server, or the product that tools carry in front of their names, means its tools.

The words alone count such a name for little, since all tools of the server have it.
"""

import re
from collections.abc import Mapping

from agent_gate.discovery.signals.signal import RankedRequest, Signal
from agent_gate.discovery.stemmer import stem
from agent_gate.discovery.text import STOP, words
from agent_gate.discovery.thesaurus import thesaurus

EVERYDAY = 0.95
"""A name that is as common a word as this must be written as one: `in Word`, not `the word`."""
_NAMED = re.compile(r"\b[A-Z]\w+")


def rate(asked: RankedRequest) -> Mapping[int, float]:
    return {place: 1.0 for name in spoken(asked.query[:400]) for place in asked.names.get(name, ())}


def spoken(query: str) -> set[str]:
    """The words of a request that may be a name."""
    written = {stem(word.lower()) for word in _NAMED.findall(query)}
    said = [stem(word) for word in words(query) if word not in STOP]
    return {one for one in said if one in written or thesaurus().rarity(one) >= EVERYDAY}


PLACE = Signal("place", 0.5, rate)

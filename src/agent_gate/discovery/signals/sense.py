"""Tools whose words mean the like gain on those that only share words with the request; needs no encoder."""

from collections.abc import Iterable, Mapping

from agent_gate.discovery.senses import MOST, Sense, lanes, sense_of
from agent_gate.discovery.signals.signal import RankedRequest, Signal
from agent_gate.discovery.text import terms

FIRST, LIKE = 8, 0.34


def rate(asked: RankedRequest) -> Mapping[int, float]:
    return {place: max(0.0, likeness) for place, likeness in likenesses(asked, asked.found).items()}


def likenesses(asked: RankedRequest, places: Iterable[int]) -> dict[int, float]:
    wanted = Sense(lanes(terms(asked.query)[:MOST]))
    return {place: sense_of(asked.documents[place].lanes).likeness(wanted) for place in places}


def vouch(asked: RankedRequest) -> bool:
    """Whether one of those that the words found first is about the like; further down, something always is."""
    return any(likeness >= LIKE for likeness in likenesses(asked, asked.first(FIRST)).values())


SENSE = Signal("sense", 0.65, rate, vouch)

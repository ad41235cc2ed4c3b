"""Tools whose words mean the like gain on those that only share words with the request; needs no encoder."""

from collections.abc import Mapping

from agent_gate.discovery.senses import MOST, Sense, lanes, sense_of
from agent_gate.discovery.signals.signal import RankedRequest, Signal
from agent_gate.discovery.text import terms


def rate(asked: RankedRequest) -> Mapping[int, float]:
    wanted = Sense(lanes(terms(asked.query)[:MOST]))
    return {place: max(0.0, sense_of(asked.documents[place].lanes).likeness(wanted)) for place in asked.found}


SENSE = Signal("sense", 0.65, rate)

"""Tools that the sentence encoder places near the request, whatever their words; only where it is installed."""

from collections.abc import Mapping

from agent_gate.discovery.signals.signal import RankedRequest, Signal

NEAR = 0.3
"""Sentences that have nothing to do with each other are farther apart."""


def rate(asked: RankedRequest) -> Mapping[int, float]:
    cosines = asked.cosines
    top, low = max(cosines, default=1.0), min(cosines, default=0.0)
    spread = (top - low) or 1.0
    return {place: (cosine - low) / spread for place, cosine in enumerate(cosines)}


def vouch(asked: RankedRequest) -> bool:
    return max(asked.cosines, default=0.0) >= NEAR


MEANING = Signal("meaning", 1.5, rate, vouch)

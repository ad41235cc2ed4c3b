"""Tools that the sentence encoder places near the request, whatever their words; only where it is installed."""

from collections.abc import Mapping

from agent_gate.discovery.signals.signal import RankedRequest, Signal


def rate(asked: RankedRequest) -> Mapping[int, float]:
    if asked.space is None:
        return {}
    cosines = asked.space.similarities(asked.query)
    top, low = max(cosines, default=1.0), min(cosines, default=0.0)
    spread = (top - low) or 1.0
    return {place: (cosine - low) / spread for place, cosine in enumerate(cosines)}


MEANING = Signal("meaning", 2.0, rate)

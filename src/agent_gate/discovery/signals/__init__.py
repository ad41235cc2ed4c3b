"""The signals that rank tools beside the words they share with a request: a file for each, and its line here."""

from collections.abc import Sequence

from agent_gate.discovery.signals.figures import FIGURES
from agent_gate.discovery.signals.meaning import MEANING
from agent_gate.discovery.signals.place import PLACE
from agent_gate.discovery.signals.sense import SENSE
from agent_gate.discovery.signals.signal import RankedRequest, Signal

SIGNALS: Sequence[Signal] = (SENSE, MEANING, FIGURES, PLACE)

__all__ = ["SIGNALS", "RankedRequest", "Signal"]

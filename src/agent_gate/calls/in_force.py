"""The terms that calls are under: settings and rules, made whole from the files and swapped whole by a reload."""

from dataclasses import dataclass

from agent_gate.config.settings import Settings
from agent_gate.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What counts at one moment."""

    settings: Settings
    policy: Policy


class InForce:
    """Whoever needs a setting or a rule reads `terms` when it needs it, and keeps nothing of it."""

    __slots__ = ("terms",)

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def swap(self, terms: Terms) -> None:
        self.terms = terms

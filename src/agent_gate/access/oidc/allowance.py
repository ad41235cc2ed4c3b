"""What agents may be by their person's login alone: sources, mode and days, told by the groups of the person."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent_gate.core.call import Mode

EVERYBODY = "*"
MOST_DAYS = 90.0
"""For how long an agent may come in by one yes, or by one login."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """`namespaces` None is all of them."""

    namespaces: frozenset[str] | None
    mode: Mode
    days: float

    def covers(self, asked: Sequence[str] | None) -> bool:
        """Whether an agent that asks for these, None for all that it is given, asks for nothing else."""
        return self.namespaces is None or asked is None or set(asked) <= self.namespaces

    def given(self, asked: Sequence[str] | None) -> tuple[str, ...] | None:
        """The namespaces of an agent that asks for these."""
        if asked is not None:
            return tuple(asked)
        return None if self.namespaces is None else tuple(sorted(self.namespaces))

    def left_of(self, had: Sequence[str] | None) -> tuple[str, ...] | None:
        """What an agent keeps of the namespaces that it had."""
        if had is None:
            return self.given(None)
        return tuple(one for one in had if self.namespaces is None or one in self.namespaces)


class GroupAllowance(Protocol):
    def allowance(self) -> Allowance: ...


def allowance_of(groups: Collection[str], said: Mapping[str, GroupAllowance]) -> Allowance | None:
    """What members of these groups have: the sources of all of them together, mode and days of the first in the file."""
    found = [one.allowance() for group, one in said.items() if group == EVERYBODY or group in groups]
    if not found:
        return None
    spaces = [one.namespaces for one in found]
    together = None if None in spaces else frozenset[str]().union(*(one for one in spaces if one is not None))
    return Allowance(namespaces=together, mode=found[0].mode, days=found[0].days)

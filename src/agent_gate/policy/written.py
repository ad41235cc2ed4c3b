"""Rules as a file has them, into the policy that they are."""

from collections.abc import Sequence
from typing import Protocol

from agent_gate.policy.decide import Policy
from agent_gate.policy.rule import Rule


class Written(Protocol):
    """The file as a whole."""

    @property
    def rules(self) -> Sequence[Rule]: ...
    @property
    def defaults(self) -> Sequence[Rule]: ...


def policy_of(written: Written) -> Policy:
    return Policy(written.rules, written.defaults)

"""Rules as a file has them, into the policy that they are."""

from collections.abc import Iterable
from typing import Protocol

from agent_gate.core.rule import Rule
from agent_gate.policy.decide import Policy


class WrittenRule(Protocol):
    """One entry of the file."""

    def rule(self) -> Rule: ...


class Written(Protocol):
    """The file as a whole."""

    @property
    def rules(self) -> Iterable[WrittenRule]: ...
    @property
    def defaults(self) -> Iterable[WrittenRule]: ...


def policy_of(written: Written) -> Policy:
    return Policy((rule.rule() for rule in written.rules), (rule.rule() for rule in written.defaults))

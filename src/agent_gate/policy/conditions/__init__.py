"""The conditions that a rule may have beside its pattern: a file and a line of `CONDITIONS` each."""

from agent_gate.policy.conditions.callers import CALLERS
from agent_gate.policy.conditions.condition import Condition, ConditionKind, Misread
from agent_gate.policy.conditions.namespace import NAMESPACE
from agent_gate.policy.conditions.people import GROUPS, PEOPLE
from agent_gate.policy.conditions.traits import TRAIT_CONDITIONS
from agent_gate.policy.conditions.when import WHEN

CONDITIONS: tuple[ConditionKind, ...] = (
    NAMESPACE,
    CALLERS,
    PEOPLE,
    GROUPS,
    *TRAIT_CONDITIONS,
    WHEN,
)
"""In the order in which they are looked at and told."""

__all__ = ["CONDITIONS", "Condition", "ConditionKind", "Misread"]

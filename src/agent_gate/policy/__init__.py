"""Policy: rules in, a `Decision` with its reason out. Pure; no I/O and no clock.

Every `deny` is looked at before every `allow`, every `allow` before every `ask`; then `defaults`, first match;
then *ask*. An exception inside the engine is a deny.
"""

from agent_gate.policy.decide import Policy
from agent_gate.policy.subject import Subject

__all__ = ["Policy", "Subject"]

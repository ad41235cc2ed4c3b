"""The story of one call: admit, record, perform, settle.

`Calls.run` is all that a surface calls. `admit` refuses or returns a `Case`; `perform` takes a case whose
dispatch it has won in the record, reaches the source once, and settles the outcome. The two are joined by the
record, because a call must be able to go on without its sender.
"""

from agent_gate.calls.calls import Calls

__all__ = ["Calls"]

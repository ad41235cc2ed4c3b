"""Decides whether a result goes to the agent as it is or as an envelope."""

from collections.abc import Callable

from agent_gate.core.call import Caller, Mode, Result
from agent_gate.core.tool import Tool

DEFAULT_BUDGET = 4000
"""Tokens of a result that reach the agent unless the tool or the caller says otherwise."""

Fits = Callable[[str, int], bool]
"""Whether a text has at most so many tokens. The composition root passes the exact counter."""


def budget_for(tool: Tool, caller: Caller, default: int = DEFAULT_BUDGET) -> int:
    """The smaller of what the tool and the caller set, else the default."""
    asked = [budget for budget in (tool.definition.budget, caller.budget) if budget is not None]
    return min(asked, default=default)


def within(result: Result, budget: int, fits: Fits) -> bool:
    """Whether the result is small enough to be read whole."""
    return fits(result.body.decode("utf-8", "replace"), budget)


def wants_envelope(mode: Mode, result: Result, budget: int, fits: Fits) -> bool:
    """`gateway` callers always get an envelope, others only above the budget."""
    return mode == "gateway" or not within(result, budget, fits)

"""Whether a result is small enough to go to the agent as it is."""

from collections.abc import Callable

from agent_gate.core.call import Result

DEFAULT_BUDGET = 4000
"""Tokens of a result that reach the agent unless the tool or the caller says otherwise."""

Fits = Callable[[str, int], bool]
"""Whether a text has at most so many tokens. The composition root passes the exact counter."""


def within(result: Result, budget: int, fits: Fits) -> bool:
    """Whether the result is small enough to be read whole."""
    return fits(result.body.decode("utf-8", "replace"), budget)

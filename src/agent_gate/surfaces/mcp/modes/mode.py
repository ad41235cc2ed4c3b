"""`ToolMode`: another way to show tools, such as a few meta-tools in place of the whole catalog."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from agent_gate.core.call import Call, Caller, Outcome, Pending

ModeReply = bytes | Outcome | Pending
"""A raw MCP tool result, or what `Calls` said, which the surface then renders."""

WaitFor = Callable[[float], Awaitable[Outcome | Pending]]
"""Runs or rejoins a call, and waits so many seconds for a person."""

HoldRequest = Callable[[WaitFor], Awaitable[Outcome | Pending]]
"""Waits as long as the surface holds a request, with signs of life for its client."""


class ToolMode(Protocol):
    """Added to the surface under the name that stands in `/mcp/NAME` or in a caller's `mode`."""

    def list(self, caller: Caller) -> bytes | None:
        """The JSON array of this caller's tools; None shows the whole catalog."""
        ...

    def call(self, call: Call, resumes: str | None, held: HoldRequest) -> Awaitable[ModeReply] | None:
        """Answer a call of one of this mode's own tools; None lets the catalog answer.

        `call` is the request as it came: its `tool` and `arguments` are the meta-tool's own.
        `resumes` is the id of the call that an earlier leg of this request left waiting for a person;
        `held` waits for one.
        """
        ...

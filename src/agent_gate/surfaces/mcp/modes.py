"""`Mode`: another way to show tools, such as a few meta-tools in place of the whole catalog."""

from collections.abc import Awaitable, Mapping
from typing import Protocol

from agent_gate.core.call import Caller, Outcome, Pending
from agent_gate.core.tool import Json
from agent_gate.surfaces.mcp.visit import Visit

Reply = bytes | Outcome | Pending
"""A raw MCP tool result, or what `Calls` said, which the surface then renders."""


class Mode(Protocol):
    """Added to the surface under the name that stands in `/mcp/NAME` or in a caller's `mode`."""

    def list(self, caller: Caller, era: str) -> bytes | None:
        """The JSON array of this caller's tools; None shows the whole catalog."""
        ...

    def call(
        self, name: str, arguments: Mapping[str, Json], visit: Visit, resumes: str | None
    ) -> Awaitable[Reply] | None:
        """Answer a call of one of this mode's own tools; None lets the catalog answer.

        `visit` is the call's `Conversation` and knows the caller, the session and the request's `_meta`.
        `resumes` is the id of the call that an earlier leg of this request left waiting for a person.
        """
        ...

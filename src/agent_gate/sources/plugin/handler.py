"""`ServiceHandler`: the class a Python plugin writes."""

from abc import ABC, abstractmethod
from typing import Any

from agent_gate.config.services.settings import ServiceConfig, ToolDefinition


class ServiceHandler(ABC):
    """One service that is reached in its own way.

    The gateway makes one handler per service with `handler: python`, in a thread of its own, and asks it to
    execute calls that were admitted, validated and, where policy says so, approved. A handler that blocks or
    fails disturbs no other source.
    """

    def __init__(self, config: ServiceConfig, tools: list[ToolDefinition]) -> None:
        self.config = config
        self.tools = tools

    @abstractmethod
    def execute(self, tool_name: str, args: dict[str, Any]) -> Any:
        """Execute one call and return its result as JSON values. May be `async def`, or block.

        Raise `agent_gate.errors.UpstreamError` for what the agent should read; the text of any other
        exception stays in the gateway's log.
        """

    async def start(self) -> None:  # noqa: B027 - most handlers need no start
        """Called once before the first call; raising leaves the source visible with its reason, to be tried again."""

    async def health_check(self) -> bool:
        """Whether the service is well; asked every half minute, never in the way of calls."""
        return True

    async def close(self) -> None:  # noqa: B027 - nor an end
        """Called when the source is closed."""

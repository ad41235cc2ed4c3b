"""`SingleServer`: an MCP server that runs on one gateway at a time. Elsewhere its tools are there too, and their calls are
done by the gateway that runs it."""

import asyncio
from collections.abc import Sequence

from agent_gate.config.servers.settings import ServerSettings
from agent_gate.core.call import Result
from agent_gate.core.ports import Job
from agent_gate.core.tool import Definition
from agent_gate.errors import DependencyUnavailable
from agent_gate.sources.mcp.source import McpSource
from agent_gate.sources.toolbox import OtherGateways, Toolbox


class SingleServer(McpSource):
    """`runs_here` is decided at each connection, which begins anew when that changes."""

    def __init__(self, settings: ServerSettings, toolbox: Toolbox, others: OtherGateways) -> None:
        super().__init__(settings, toolbox)
        self._others = others
        self.runs_here = False

    async def connect(self) -> Sequence[Definition]:
        self.runs_here = await self._others.take(self.key)
        return await (super().connect() if self.runs_here else self.read_listing())

    async def read_listing(self) -> Sequence[Definition]:
        """The tools as the gateway that runs the server has listed them."""
        self.unwell = None
        listed, self.about = await self._others.read_listing(self.key)
        if listed is None:
            raise DependencyUnavailable(
                f"{self.key} runs on another gateway, which has not listed its tools yet", retry_after=1
            )
        return listed

    async def watch(self) -> None:
        if self.runs_here:
            await super().watch()
        else:
            await asyncio.Event().wait()

    async def answer(self, job: Job) -> Result:
        return await (super().answer(job) if self.runs_here else self._others.ask(self.key, job))

    @property
    def context(self) -> McpSource | None:
        """Its resources and prompts are where it runs."""
        return super().context if self.runs_here else None

    async def try_as(self, caller: str) -> None:
        if self.runs_here:
            await super().try_as(caller)

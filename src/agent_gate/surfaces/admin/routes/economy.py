"""What each mode costs each agent in tokens, for the catalog as it is now."""

import asyncio
from dataclasses import asdict
from typing import Any

from agent_gate.core.call import Caller
from agent_gate.discovery.economy import measure
from agent_gate.net.http import HttpAnswer, json_response
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import OperatorRequest, Route


class Economics:
    """The route behind `agent-gate tokens`."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def routes(self) -> list[Route]:
        return [Route("GET", "/api/economy", self._show_economy, "Tokens per mode, server and agent")]

    def _of(self, caller: Caller) -> dict[str, Any]:
        found = measure(self._admin.view.tools(caller))
        return {"agent": caller.name, "mode": caller.mode, **asdict(found)}

    async def _show_economy(self, _ask: OperatorRequest) -> HttpAnswer:
        """Counting a large catalog takes a moment, which calls must not wait for."""
        callers = list(self._admin.who.callers())
        return json_response(200, await asyncio.to_thread(lambda: [self._of(caller) for caller in callers]))

"""A met server: requests in its era, the handshake repeated when the server has forgotten it."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from agent_gate.core.tool import Json
from agent_gate.sources.mcp.eras import Welcome, initialize, modern_meta
from agent_gate.sources.mcp.link import Link, Order
from agent_gate.sources.mcp.wire import StaleSession, is_modern

RENEWED = "notifications/tools/list_changed"


class Session:
    """One link with what its server said at the start. `declared` are the capabilities offered in the handshake."""

    def __init__(self, link: Link, welcome: Welcome, declared: Mapping[str, Json]) -> None:
        self.link = link
        self.welcome = welcome
        self.declared = declared
        self.modern = is_modern(welcome.era)
        self.renewing = asyncio.Lock()
        link.renew = self.renew

    @property
    def usable(self) -> bool:
        return not self.link.lost.done()

    @property
    def in_flight(self) -> int:
        """How many requests have no answer yet."""
        return self.link.in_flight

    def send(
        self, order: Order, capabilities: Mapping[str, Json] | None = None
    ) -> Coroutine[Any, Any, bytes]:
        """Send one request; `capabilities` are those of the caller it is for."""
        if self.modern:
            own = modern_meta(self.declared if capabilities is None else capabilities)
            order.params["_meta"] = {**order.params.get("_meta", {}), **own}
        return self.link.request(order)

    async def renew(self, stale: StaleSession, deadline: float) -> None:
        """Introduce ourselves again, once for all requests that the server refused to look at."""
        async with self.renewing:
            if not stale.current():
                return
            self.welcome = await initialize(self.link, self.declared, deadline)
        self.link.notice(RENEWED, {})

    async def close(self) -> None:
        await self.link.close()

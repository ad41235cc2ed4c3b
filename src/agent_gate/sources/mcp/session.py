"""A met server: requests in its era, the handshake repeated when the server has forgotten it."""

import asyncio
from collections.abc import Mapping

from agent_gate.core.tool import Json
from agent_gate.sources.mcp.eras import Welcome, initialize, modern_meta
from agent_gate.sources.mcp.link import Link, Order
from agent_gate.sources.mcp.wire import Broken, StaleSession, is_modern

RENEWED = "notifications/tools/list_changed"


class Session:
    """One link with what its server said at the start. `declared` are the capabilities offered in the handshake."""

    def __init__(self, link: Link, welcome: Welcome, declared: Mapping[str, Json]) -> None:
        self.link = link
        self.welcome = welcome
        self.declared = declared
        self.modern = is_modern(welcome.era)
        self.renewing = asyncio.Lock()
        self.in_flight = 0

    @property
    def usable(self) -> bool:
        return not self.link.lost.done()

    async def send(self, order: Order, capabilities: Mapping[str, Json] | None = None) -> bytes:
        """Send one request; `capabilities` are those of the caller it is for."""
        if self.modern:
            own = modern_meta(self.declared if capabilities is None else capabilities)
            order.params["_meta"] = {**order.params.get("_meta", {}), **own}
        self.in_flight += 1
        try:
            return await self.link.request(order)
        except StaleSession as stale:
            await self.renew(stale, order.deadline)
            return await self.again(order)
        finally:
            self.in_flight -= 1

    async def again(self, order: Order) -> bytes:
        """Send a request that the server refused to look at, because it had forgotten the session."""
        try:
            return await self.link.request(order)
        except StaleSession:
            raise Broken("it forgets its sessions at once", sent=False) from None

    async def renew(self, stale: StaleSession, deadline: float) -> None:
        async with self.renewing:
            if not stale.current():
                return
            self.welcome = await initialize(self.link, self.declared, deadline)
        self.link.notice(RENEWED, {})

    async def close(self) -> None:
        await self.link.close()

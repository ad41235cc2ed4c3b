"""`ServerSession`: an open session with a server: requests in its revision, the handshake again when it forgot it."""

import asyncio
from collections.abc import Coroutine, Mapping
from time import monotonic
from typing import Any

from agent_gate.core.tool import Json
from agent_gate.mcp.names import TOOLS_CHANGED
from agent_gate.sources.mcp.sessions.meeting import Welcome, initialize, said_each_time
from agent_gate.sources.mcp.wire.link import ServerLink
from agent_gate.sources.mcp.wire.order import Order
from agent_gate.sources.mcp.wire.problems import Broken, StaleSession

RENEW_SECONDS = 30.0


class ServerSession:
    """One link with what its server said at the start. `declared` are the capabilities offered in the handshake."""

    def __init__(self, link: ServerLink, welcome: Welcome, declared: Mapping[str, Json]) -> None:
        self.link = link
        self.welcome = welcome
        self.declared = declared
        self.revision = welcome.revision
        self.renewal: asyncio.Task[None] | None = None
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
        if not self.revision.has_sessions:
            declared = self.declared if capabilities is None else capabilities
            order.own = said_each_time(self.revision, declared)
        return self.link.request(order)

    async def renew(self, stale: StaleSession, deadline: float) -> None:
        """Introduce ourselves again, once for all requests that the server refused to look at.

        A request that is given up does not end this: the others, and those to come, need the session.
        """
        if not stale.current():
            return
        if self.renewal is None or self.renewal.done():
            self.renewal = asyncio.create_task(self.introduce())
        renewal = self.renewal
        await asyncio.wait([renewal], timeout=max(0.0, deadline - monotonic()))
        if not renewal.done():
            raise TimeoutError
        if (error := failure(renewal)) is not None:
            raise error

    async def introduce(self) -> None:
        self.welcome = await initialize(self.link, self.declared, monotonic() + RENEW_SECONDS)
        self.link.notice(TOOLS_CHANGED, {})

    async def close(self) -> None:
        if self.renewal is not None:
            self.renewal.cancel()
        await self.link.close()


def failure(renewal: "asyncio.Task[None]") -> BaseException | None:
    """Why a session could not be renewed."""
    return Broken("it was closed", sent=False) if renewal.cancelled() else renewal.exception()

"""Opens one session with a server, over whichever transport its entry names."""

import asyncio
from collections.abc import Mapping
from time import monotonic

from agent_gate.config.servers.settings import ServerSettings, find_command
from agent_gate.core.credentials import Identity
from agent_gate.core.tool import Json
from agent_gate.errors import ConfigError
from agent_gate.net.pool import Pool
from agent_gate.sources.access import Access
from agent_gate.sources.mcp.child import child_environment
from agent_gate.sources.mcp.eras import negotiate
from agent_gate.sources.mcp.http import HttpLink
from agent_gate.sources.mcp.link import Link
from agent_gate.sources.mcp.session import Session
from agent_gate.sources.mcp.sse import SseLink
from agent_gate.sources.mcp.stdio import StdioLink
from agent_gate.sources.mcp.wire import MAX_MESSAGE, NEWEST_HANDSHAKE, Broken, Refused, RpcError, is_modern

CONNECT_SECONDS = 30.0


def identity(settings: ServerSettings) -> Identity:
    """Who the gateway is to a server: its key goes into a header, or to a child under the name that its entry gives."""
    auth = settings.auth
    kind = ("header" if auth.header_name else "bearer") if auth.token else "none"
    key = {auth.env: auth.token} if auth.env and auth.token else {}
    return Identity(
        source=settings.key,
        type=kind,
        token=auth.token,
        header_name=auth.header_name,
        headers=settings.headers,
        env={**key, **settings.env},
    )


class Dialer:
    """Knows how to reach one server; each `open` is a session of its own."""

    def __init__(
        self, settings: ServerSettings, pool: Pool, access: Access, limit: int = MAX_MESSAGE
    ) -> None:
        self.settings = settings
        self.access = access
        self.pool = pool
        self.limit = limit
        self.transport: str = "stdio" if settings.command else settings.transport
        self.missing = ""
        self.argv: list[str] = []
        if settings.command:
            self.resolve()

    def resolve(self) -> None:
        """Look the program up. Once found it stays; a missing one is why this server cannot be opened now."""
        try:
            self.argv = [find_command(self.settings), *self.settings.args]
            self.missing = ""
        except ConfigError as error:
            self.missing = error.message

    @property
    def exclusive(self) -> bool:
        """Whether a session is a connection of its own, rather than a header on shared ones."""
        return self.transport in ("stdio", "sse")

    async def open(self, known: str, capabilities: Mapping[str, Json], caller: str = "") -> Session:
        """Connect and meet the server, for `caller` alone or for all; `known` is the era it is known to speak."""
        deadline = monotonic() + CONNECT_SECONDS
        if self.transport == "sse":
            known = NEWEST_HANDSHAKE
        try:
            return await self.dial(known, capabilities, deadline, caller)
        except Refused as refusal:
            if self.transport != "auto" or refusal.status not in (400, 404, 405):
                raise
            return await self.dial_older(refusal, capabilities, deadline, caller)
        except Broken:
            if self.transport != "stdio" or (known and not is_modern(known)):
                raise
            return await self.dial(NEWEST_HANDSHAKE, capabilities, deadline, caller)

    async def dial(
        self, known: str, capabilities: Mapping[str, Json], deadline: float, caller: str
    ) -> Session:
        link = await self.link(self.transport, deadline, caller)
        return await self.meet(link, known, capabilities, deadline)

    async def dial_older(
        self, refusal: Refused, capabilities: Mapping[str, Json], deadline: float, caller: str
    ) -> Session:
        """Try the older transport with a server that refuses the newer; what works is kept for the next time."""
        try:
            link = await self.link("sse", deadline, caller)
            session = await self.meet(link, NEWEST_HANDSHAKE, capabilities, deadline)
        except (RpcError, Broken, TimeoutError):
            raise refusal from None
        self.transport = "sse"
        return session

    async def meet(
        self, link: Link, known: str, capabilities: Mapping[str, Json], deadline: float
    ) -> Session:
        try:
            async with asyncio.timeout(deadline - monotonic()):
                return Session(link, await negotiate(link, capabilities, known, deadline), capabilities)
        except BaseException:
            await link.close()
            raise

    async def link(self, transport: str, deadline: float, caller: str) -> Link:
        settings = self.settings
        if self.missing:
            self.resolve()
        if self.missing:
            raise Broken(self.missing, sent=False)
        if transport == "stdio":
            proof = self.access.at_hand(caller) or await self.access.fetch(caller)
            stdio = StdioLink(self.limit)
            await stdio.start(settings.key, self.argv, child_environment(proof.env), settings.cwd)
            return stdio
        if transport == "sse":
            sse = SseLink(self.pool, settings.url, self.access, caller)
            await sse.start(deadline)
            return sse
        return HttpLink(self.pool, settings.url, self.access, self.limit, caller)

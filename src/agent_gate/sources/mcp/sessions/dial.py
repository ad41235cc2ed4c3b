"""Opens one session with a server, over whichever transport its entry names."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

from agent_gate.config.servers.settings import ServerSettings, find_command
from agent_gate.core.credentials import Identity, SignIn, names_secret
from agent_gate.core.tool import Json
from agent_gate.errors import ConfigError
from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.revisions import NEWEST_WITH_SESSIONS, Revision
from agent_gate.net.pool import Pool
from agent_gate.sources.access import Access
from agent_gate.sources.mcp.process.child import child_environment
from agent_gate.sources.mcp.sessions.meeting import ALL_CAPABILITIES, negotiate
from agent_gate.sources.mcp.sessions.session import ServerSession
from agent_gate.sources.mcp.wire.borrowed import BorrowedLink, Loan
from agent_gate.sources.mcp.wire.frames import MAX_MESSAGE
from agent_gate.sources.mcp.wire.http import HttpLink
from agent_gate.sources.mcp.wire.link import ServerLink
from agent_gate.sources.mcp.wire.problems import Broken, TurnedAway
from agent_gate.sources.mcp.wire.sse import SseLink
from agent_gate.sources.mcp.wire.stdio import StdioLink

CONNECT_SECONDS = 30.0


def identity(settings: ServerSettings) -> Identity:
    """Who the gateway is to a server: its key goes into a header, or to a child under the name that its entry gives."""
    auth, signing = settings.auth, sign_in(settings)
    key = {auth.env: auth.token} if auth.env and auth.token else {}
    return Identity(
        source=settings.key,
        title=settings.title,
        type="header" if auth.header_name else "bearer" if auth.token or signing else "none",
        token=auth.token,
        header_name=auth.header_name,
        headers=settings.headers,
        env={**key, **settings.env},
        sign_in=signing,
        per_caller=settings.credentials == "per-caller",
    )


def sign_in(settings: ServerSettings) -> SignIn | None:
    """How a server's account is connected. One of which nothing is said may want a sign-in or none: it will tell."""
    auth = settings.auth
    if auth.token:
        return None
    if auth.type != "none":
        return auth.sign_in(auth.type, settings.url, env=auth.env)
    if settings.command or any(map(names_secret, settings.headers)):
        return None
    return auth.sign_in("oauth2-pkce", settings.url, on_refusal=True)


class Dialer:
    """Knows how to reach one server; each `open` is a session of its own."""

    def __init__(
        self,
        settings: ServerSettings,
        pool: Pool,
        access: Access,
        limit: int = MAX_MESSAGE,
        lender: Path | None = None,
    ) -> None:
        self.settings = settings
        self.access = access
        self.pool = pool
        self.limit = limit
        self.lender = lender
        """Who holds the program of a stdio server for several workers, where there are some."""
        self.transport: str = "stdio" if settings.command else settings.transport
        self.exclusive = self.transport in ("stdio", "sse")
        """Whether a session is a connection of its own, rather than a header on shared ones."""
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

    async def open(
        self, known: Revision | None, capabilities: Mapping[str, Json], caller: str = ""
    ) -> ServerSession:
        """Connect and meet the server, for `caller` alone or for all; `known` is the revision it is known to speak."""
        deadline = monotonic() + CONNECT_SECONDS
        if self.transport == "sse":
            known = NEWEST_WITH_SESSIONS
        try:
            return await self.dial(known, capabilities, deadline, caller)
        except TurnedAway as refusal:
            if self.transport != "auto" or refusal.status not in (400, 404, 405):
                raise
            return await self.dial_older(refusal, capabilities, deadline, caller)
        except Broken:
            if self.transport != "stdio" or (known is not None and known.has_sessions):
                raise
            return await self.dial(NEWEST_WITH_SESSIONS, capabilities, deadline, caller)

    async def dial(
        self, known: Revision | None, capabilities: Mapping[str, Json], deadline: float, caller: str
    ) -> ServerSession:
        apart = "" if capabilities is ALL_CAPABILITIES else "older"
        link = await self.open_link(self.transport, deadline, caller, apart)
        return await self.meet(link, known, capabilities, deadline)

    async def dial_older(
        self, refusal: TurnedAway, capabilities: Mapping[str, Json], deadline: float, caller: str
    ) -> ServerSession:
        """Try the older transport with a server that refuses the newer; what works is kept for the next time."""
        try:
            link = await self.open_link("sse", deadline, caller)
            session = await self.meet(link, NEWEST_WITH_SESSIONS, capabilities, deadline)
        except (RpcError, Broken, TimeoutError):
            raise refusal from None
        self.transport, self.exclusive = "sse", True
        return session

    async def meet(
        self, link: ServerLink, known: Revision | None, capabilities: Mapping[str, Json], deadline: float
    ) -> ServerSession:
        try:
            async with asyncio.timeout(deadline - monotonic()):
                return ServerSession(link, await negotiate(link, capabilities, known, deadline), capabilities)
        except BaseException:
            await link.close()
            raise

    async def borrow(self, lender: Path, env: Mapping[str, str], caller: str, apart: str) -> ServerLink:
        """The program that all workers share; a session apart, for a caller or in an older revision, has its own."""
        link = BorrowedLink(self.limit)
        cwd = self.settings.cwd
        await link.borrow(lender, Loan(self.settings.key, tuple(self.argv), env, cwd, f"{apart}:{caller}"))
        return link

    async def open_link(self, transport: str, deadline: float, caller: str, apart: str = "") -> ServerLink:
        settings = self.settings
        if self.missing:
            self.resolve()
        if self.missing:
            raise Broken(self.missing, sent=False)
        if transport == "stdio":
            proof = self.access.at_hand(caller) or await self.access.fetch(caller)
            env = child_environment(proof.env)
            if self.lender is not None:
                return await self.borrow(self.lender, env, caller, apart)
            stdio = StdioLink(self.limit)
            await stdio.start(settings.key, self.argv, env, settings.cwd)
            return stdio
        if transport == "sse":
            sse = SseLink(self.pool, settings.url, self.access, caller)
            await sse.start(deadline)
            return sse
        return HttpLink(self.pool, settings.url, self.access, self.limit, caller)

"""The sessions of one server: the one its lists come from, and those kept apart for a caller or an older revision."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from agent_gate.config.servers.settings import ServerSettings
from agent_gate.core.ports import Memory
from agent_gate.core.tasks import KeptTasks
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.messages import encode
from agent_gate.mcp.revisions import BY_NAME, NEWEST_WITH_SESSIONS, Revision
from agent_gate.net.pool import Pool
from agent_gate.sources.access import Access
from agent_gate.sources.mcp.sessions.dial import Dialer
from agent_gate.sources.mcp.sessions.meeting import ALL_CAPABILITIES
from agent_gate.sources.mcp.sessions.session import ServerSession
from agent_gate.sources.mcp.wire.frames import MAX_MESSAGE
from agent_gate.sources.mcp.wire.link import Notice
from agent_gate.sources.mcp.wire.order import Order
from agent_gate.sources.mcp.wire.problems import Broken, TurnedAway

log = logging.getLogger("agent_gate.sources.mcp")

MAX_CHILDREN = 16
MAX_SESSIONS = 512
TWIN = b"handshake"
SessionKey = tuple[str, bytes]
"""A caller, and what sets its session apart: the capabilities it declared, or the older revision."""


class ServerSessions:
    """`main` is met first and lists everything; others are opened when a caller needs one."""

    def __init__(
        self,
        settings: ServerSettings,
        pool: Pool,
        access: Access,
        memory: Memory,
        notice: Notice,
        limit: int = MAX_MESSAGE,
        lender: Path | None = None,
    ) -> None:
        self.settings = settings
        self.dialer = Dialer(settings, pool, access, limit, lender)
        self.per_caller = settings.credentials == "per-caller"
        self.alone = self.per_caller or settings.isolation == "caller"
        self.memory = memory
        self.notice = notice
        self.main: ServerSession | None = None
        self.others: OrderedDict[SessionKey, asyncio.Task[ServerSession]] = OrderedDict()
        self.opened: dict[SessionKey, ServerSession] = {}
        self.closing = KeptTasks(log, "A session with a server could not be closed")
        self.handshake_refused = False
        self.declared: tuple[Mapping[str, Json], bytes] = ({}, b"")

    @property
    def memory_key(self) -> str:
        place = [self.dialer.argv, self.settings.url]
        return f"mcp-era:{self.settings.key}:{sha256(encode(place)).hexdigest()[:16]}"

    async def open(self) -> ServerSession:
        """Meet the server anew; whatever was open before is closed."""
        await self.close()
        self.handshake_refused = False
        known = BY_NAME.get(self.memory.get(self.memory_key) or "")
        session = await self.meet(known)
        if session.revision is not known:
            self.memory.set(self.memory_key, session.revision.name)
        session.link.notice = self.notice
        self.main = session
        return session

    async def meet(self, known: Revision | None) -> ServerSession:
        """In the revision it spoke before; a server that was replaced since is asked again what it speaks."""
        try:
            return await self.dialer.open(known, ALL_CAPABILITIES)
        except RpcError as error:
            if known is None or (isinstance(error, TurnedAway) and error.status in (401, 403)):
                raise
        return await self.dialer.open(None, ALL_CAPABILITIES)

    @property
    def usable(self) -> bool:
        return self.main is not None and self.main.usable

    def current(self) -> ServerSession:
        if self.main is None:
            raise Broken("it is not connected", sent=False)
        if not self.main.usable:
            raise Broken(self.main.link.lost.result(), sent=False)
        return self.main

    def choose_key(self, order: Order, main: ServerSession) -> SessionKey | None:
        """The key of the session this caller needs for itself; None where the shared one will do."""
        if order.shared:
            return None
        alone = self.alone
        by_result = main.revision.asks_by_result and not order.comes_back
        if by_result and order.can_be_asked and not self.handshake_refused:
            if self.dialer.exclusive:
                return (order.caller if alone else "", TWIN)
            return (order.caller, TWIN + encode(order.capabilities))
        if not main.revision.has_sessions:
            return (order.caller, b"") if self.per_caller or (alone and self.dialer.exclusive) else None
        if self.dialer.exclusive:
            return (order.caller, b"") if alone else None
        # Most clients declare the same with each of their requests.
        capabilities = order.capabilities
        if capabilities is not self.declared[0] and capabilities != self.declared[0]:
            self.declared = (capabilities, encode(capabilities) if capabilities else b"")
        return (order.caller, self.declared[1])

    def at_hand(self, order: Order) -> ServerSession | None:
        """The session for this request, where it is open already."""
        main = self.main
        if main is None or main.link.lost.done():
            return None
        key = self.choose_key(order, main)
        if key is None:
            return main
        session = self.opened.get(key)
        if session is None or session.link.lost.done():
            return None
        self.others.move_to_end(key)
        return session

    async def find_or_open(self, order: Order) -> ServerSession:
        """The session for this request, opened if it has to be."""
        main = self.current()
        key = self.choose_key(order, main)
        if key is None:
            return main
        try:
            return await self.find_or_open_other(key, order, main)
        except (RpcError, Broken, TimeoutError) as error:
            if not key[1].startswith(TWIN):
                raise
            log.info("%s has no handshake: %s", self.settings.key, error)
            self.handshake_refused = isinstance(error, RpcError)
            return (
                await self.find_or_open_other((order.caller, b""), order, main) if self.per_caller else main
            )

    async def find_or_open_other(self, key: SessionKey, order: Order, main: ServerSession) -> ServerSession:
        """The session under `key`, opened once however many calls wait for it."""
        task = self.others.get(key)
        if task is not None and task.done() and not alive(task):
            self.drop(key)
            task = None
        if task is None:
            revision = NEWEST_WITH_SESSIONS if key[1].startswith(TWIN) else main.revision
            declared = ALL_CAPABILITIES if self.dialer.exclusive else order.capabilities
            task = self.others[key] = asyncio.create_task(self.open_other(revision, declared, key[0]))
            task.add_done_callback(failure)
            self.evict()
        await asyncio.wait([task])
        if task.cancelled():
            raise Broken("it was closed while a session with it was being opened", sent=False)
        session = task.result()
        if self.others.get(key) is task:
            self.opened[key] = session
        return session

    async def open_other(
        self, revision: Revision, declared: Mapping[str, Json], caller: str
    ) -> ServerSession:
        session = await self.dialer.open(revision, declared, caller)
        session.link.notice = self.overhear
        return session

    def overhear(self, method: str, params: Mapping[str, Json]) -> None:
        """A notice in a caller's own session: that a list changed may be said nowhere else."""
        if method.endswith("/list_changed"):
            self.notice(method, params)

    def evict(self) -> None:
        """Close the session unused for longest, but none with a call in flight."""
        limit = MAX_CHILDREN if self.dialer.exclusive else MAX_SESSIONS
        for key, task in list(self.others.items()):
            if len(self.others) <= limit:
                return
            if task.done() and not (alive(task) and task.result().in_flight):
                self.drop(key)

    def drop(self, key: SessionKey) -> None:
        self.opened.pop(key, None)
        self.close_later(self.others.pop(key))

    async def forget(self, caller: str) -> None:
        """Close the sessions of one caller, and wait until they are."""
        for key in [key for key in self.others if key[0] == caller]:
            self.drop(key)
        await self.closing.wait()

    def close_later(self, task: "asyncio.Task[ServerSession]") -> None:
        self.closing.start(close_opened(task))

    async def close(self) -> None:
        main, self.main = self.main, None
        for key in list(self.others):
            self.drop(key)
        if main is not None:
            await main.close()
        await self.closing.wait()


def alive(task: "asyncio.Task[ServerSession]") -> bool:
    return not task.cancelled() and task.exception() is None and not task.result().link.lost.done()


def failure(task: "asyncio.Task[ServerSession]") -> BaseException | None:
    """Why a session could not be opened; reading it keeps the loop from reporting it a second time."""
    return None if task.cancelled() else task.exception()


async def close_opened(task: "asyncio.Task[ServerSession]") -> None:
    """Close a session whether it is open or still being opened."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and failure(task) is None:
        await task.result().close()

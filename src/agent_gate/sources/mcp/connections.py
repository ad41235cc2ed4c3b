"""The sessions of one server: the one its lists come from, and those kept apart for a caller or an era."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256

from agent_gate.config.servers.settings import ServerSettings
from agent_gate.core.ports import Memory
from agent_gate.core.tool import Json
from agent_gate.net.pool import Pool
from agent_gate.sources.access import Access
from agent_gate.sources.mcp.ask import Ask
from agent_gate.sources.mcp.dial import Dialer
from agent_gate.sources.mcp.eras import ALL_CAPABILITIES
from agent_gate.sources.mcp.link import Notice
from agent_gate.sources.mcp.session import Session
from agent_gate.sources.mcp.wire import MAX_MESSAGE, NEWEST_HANDSHAKE, Broken, Refused, RpcError, encode

log = logging.getLogger("agent_gate.sources.mcp")

MAX_CHILDREN = 16
MAX_SESSIONS = 512
TWIN = b"handshake"
Key = tuple[str, bytes]
"""A caller, and what sets its session apart: the capabilities it declared, or the older era."""


class Connections:
    """`main` is met first and lists everything; others are opened when a caller needs one."""

    def __init__(
        self,
        settings: ServerSettings,
        pool: Pool,
        access: Access,
        memory: Memory,
        notice: Notice,
        limit: int = MAX_MESSAGE,
    ) -> None:
        self.settings = settings
        self.dialer = Dialer(settings, pool, access, limit)
        self.memory = memory
        self.notice = notice
        self.main: Session | None = None
        self.others: OrderedDict[Key, asyncio.Task[Session]] = OrderedDict()
        self.opened: dict[Key, Session] = {}
        self.closing: set[asyncio.Task[None]] = set()
        self.handshake_refused = False
        self.declared: tuple[Mapping[str, Json], bytes] = ({}, b"")

    @property
    def memory_key(self) -> str:
        place = [self.dialer.argv, self.settings.url]
        return f"mcp-era:{self.settings.key}:{sha256(encode(place)).hexdigest()[:16]}"

    async def open(self) -> Session:
        """Meet the server anew; whatever was open before is closed."""
        await self.close()
        self.handshake_refused = False
        known = self.memory.get(self.memory_key) or ""
        session = await self.meet(known)
        if session.welcome.era != known:
            self.memory.set(self.memory_key, session.welcome.era)
        session.link.notice = self.notice
        self.main = session
        return session

    async def meet(self, known: str) -> Session:
        """In the era it spoke before; a server that was replaced since is asked again what it speaks."""
        try:
            return await self.dialer.open(known, ALL_CAPABILITIES)
        except RpcError as error:
            if not known or (isinstance(error, Refused) and error.status in (401, 403)):
                raise
        return await self.dialer.open("", ALL_CAPABILITIES)

    @property
    def usable(self) -> bool:
        return self.main is not None and self.main.usable

    def current(self) -> Session:
        if self.main is None:
            raise Broken("it is not connected", sent=False)
        if not self.main.usable:
            raise Broken(self.main.link.lost.result(), sent=False)
        return self.main

    def kept_apart(self, ask: Ask, main: Session) -> Key | None:
        """The key of the session this caller needs for itself; None where the shared one will do."""
        if ask.shared:
            return None
        alone = self.settings.isolation == "caller"
        if main.modern:
            if not ask.modern and ask.can_be_asked and not self.handshake_refused:
                if self.dialer.exclusive:
                    return (ask.caller if alone else "", TWIN)
                return (ask.caller, TWIN + encode(ask.capabilities))
            return (ask.caller, b"") if alone and self.dialer.exclusive else None
        if self.dialer.exclusive:
            return (ask.caller, b"") if alone else None
        return (ask.caller, self.encoded(ask.capabilities))

    def encoded(self, capabilities: Mapping[str, Json]) -> bytes:
        """What a client declared, as part of a key; most say the same with each of their requests."""
        if capabilities is not self.declared[0] and capabilities != self.declared[0]:
            self.declared = (capabilities, encode(capabilities) if capabilities else b"")
        return self.declared[1]

    def at_hand(self, ask: Ask) -> Session | None:
        """The session for this request, where it is open already."""
        main = self.main
        if main is None or main.link.lost.done():
            return None
        key = self.kept_apart(ask, main)
        if key is None:
            return main
        session = self.opened.get(key)
        if session is None or session.link.lost.done():
            return None
        self.others.move_to_end(key)
        return session

    async def for_ask(self, ask: Ask) -> Session:
        """The session for this request, opened if it has to be."""
        main = self.current()
        key = self.kept_apart(ask, main)
        if key is None:
            return main
        try:
            return await self.other(key, ask, main)
        except (RpcError, Broken, TimeoutError) as error:
            if not main.modern or not key[1].startswith(TWIN):
                raise
            log.info("%s has no handshake era: %s", self.settings.key, error)
            self.handshake_refused = isinstance(error, RpcError)
            return main

    async def other(self, key: Key, ask: Ask, main: Session) -> Session:
        """The session under `key`, opened once however many calls wait for it."""
        task = self.others.get(key)
        if task is not None and task.done() and not alive(task):
            self.drop(key)
            task = None
        if task is None:
            era = NEWEST_HANDSHAKE if key[1].startswith(TWIN) else main.welcome.era
            declared = ALL_CAPABILITIES if self.dialer.exclusive else ask.capabilities
            task = self.others[key] = asyncio.create_task(self.open_other(era, declared, key[0]))
            task.add_done_callback(failure)
            self.evict()
        await asyncio.wait([task])
        if task.cancelled():
            raise Broken("it was closed while a session with it was being opened", sent=False)
        session = task.result()
        if self.others.get(key) is task:
            self.opened[key] = session
        return session

    async def open_other(self, era: str, declared: Mapping[str, Json], caller: str) -> Session:
        session = await self.dialer.open(era, declared, caller)
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

    def drop(self, key: Key) -> None:
        self.opened.pop(key, None)
        self.close_later(self.others.pop(key))

    def close_later(self, task: "asyncio.Task[Session]") -> None:
        closing = asyncio.create_task(close_opened(task))
        self.closing.add(closing)
        closing.add_done_callback(self.closing.discard)

    async def close(self) -> None:
        main, self.main = self.main, None
        for key in list(self.others):
            self.drop(key)
        if main is not None:
            await main.close()
        if self.closing:
            await asyncio.wait(self.closing)


def alive(task: "asyncio.Task[Session]") -> bool:
    return not task.cancelled() and task.exception() is None and not task.result().link.lost.done()


def failure(task: "asyncio.Task[Session]") -> BaseException | None:
    """Why a session could not be opened; reading it keeps the loop from reporting it a second time."""
    return None if task.cancelled() else task.exception()


async def close_opened(task: "asyncio.Task[Session]") -> None:
    """Close a session whether it is open or still being opened."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and failure(task) is None:
        await task.result().close()

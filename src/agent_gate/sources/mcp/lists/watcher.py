"""Watches a connected server: hears of its changes, lists again, and notices when it is gone."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic

from agent_gate.core.tasks import ends_within
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import METHOD_NOT_FOUND, RpcError
from agent_gate.mcp.names import ACKNOWLEDGED, DISCOVER, LISTEN, META_SUBSCRIPTION, PING
from agent_gate.sources.mcp.lists.budget import Budget
from agent_gate.sources.mcp.sessions.connections import ServerSessions
from agent_gate.sources.mcp.sessions.session import ServerSession
from agent_gate.sources.mcp.wire.order import Order
from agent_gate.sources.mcp.wire.problems import Broken, Throttled

log = logging.getLogger("agent_gate.sources.mcp")

SETTLE_SECONDS = 0.5
AGAIN_SECONDS = 10.0
IDLE_SECONDS = 30.0
CHECK_SECONDS = 10.0
LISTEN_SECONDS = 24 * 3600.0
RETRY_SECONDS = 1.0
MOST_LISTS = 20
LONGEST_RETRY = 60.0
HELD_SECONDS = 20.0
LIST_KINDS = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}


class Subscription:
    """The `Talk` of a listening request: every note on its stream is a notice of the server."""

    def __init__(self, session: ServerSession) -> None:
        self.session = session

    async def notify(self, method: str, params: Mapping[str, Json]) -> None:
        if method != ACKNOWLEDGED:
            self.session.link.notice(method, without_subscription(params))

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        del params
        raise RpcError(METHOD_NOT_FOUND, f"{method:.64} is not asked on a subscription")


def without_subscription(params: Mapping[str, Json]) -> dict[str, Json]:
    meta = params.get("_meta")
    if not isinstance(meta, dict) or META_SUBSCRIPTION not in meta:
        return dict(params)
    kept = {name: value for name, value in meta.items() if name != META_SUBSCRIPTION}
    return {**params, "_meta": kept} if kept else {n: v for n, v in params.items() if n != "_meta"}


class Watcher:
    """Runs while a server is connected. `changed` asks for a new list; `watched` are the resources to hear of.

    `refresh` lists again, and says whether that was possible. `complain` is told what the server does too often.
    """

    def __init__(
        self,
        connections: ServerSessions,
        refresh: Callable[[], Awaitable[bool]],
        complain: Callable[[str], None],
        budget: Budget,
        name: str,
    ) -> None:
        self.connections = connections
        self.refresh = refresh
        self.complain = complain
        self.budget = budget
        self.name = name
        self.changed = asyncio.Event()
        self.relisten = asyncio.Event()
        self.watched: dict[str, None] = {}
        self.listening: asyncio.Task[bytes] | None = None

    async def run(self) -> None:
        """Return never; raise when the server is lost."""
        session = self.connections.current()
        jobs = [self.lose(session), self.list_again(), self.beat(session)]
        if session.revision.listens_by_request:
            jobs.append(self.listen(session))
        tasks = [asyncio.create_task(job) for job in jobs]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result

    async def lose(self, session: ServerSession) -> None:
        raise Broken(await asyncio.shield(session.link.lost), sent=False)

    async def list_again(self) -> None:
        """One new list for however many notices came while the last one settled.

        A server that cannot list now, because it is busy with a call, keeps its connection and that call.
        """
        while True:
            await self.changed.wait()
            if wait := self.budget.take():
                self.complain(
                    f"it says more than {MOST_LISTS} times a minute that its lists changed; it is heard again soon"
                )
                await asyncio.sleep(wait)
                continue
            self.changed.clear()
            if await self.refresh():
                await asyncio.sleep(SETTLE_SECONDS)
            else:
                await asyncio.sleep(AGAIN_SECONDS)
                self.changed.set()

    async def beat(self, session: ServerSession) -> None:
        """Ask a silent server for a sign of life; an error reply is one."""
        method = PING if session.revision.has_sessions else DISCOVER
        while True:
            await asyncio.sleep(IDLE_SECONDS)
            if session.in_flight > self.holds:
                continue
            try:
                await session.send(Order(method=method, params={}, deadline=monotonic() + CHECK_SECONDS))
            except (RpcError, Throttled) as error:
                log.debug("%s answered the check with: %s", self.name, error)
            except TimeoutError:
                raise Broken("it no longer answers", sent=False) from None

    @property
    def holds(self) -> bool:
        """Whether one of the requests in flight is the one that listens, which says nothing of the server's health."""
        return self.listening is not None and not self.listening.done()

    async def listen(self, session: ServerSession) -> None:
        """Hold the stream on which a server tells of changes; a lost stream may have lost some.

        Where it ends at once, it is opened more and more seldom.
        """
        short = 0
        while True:
            self.relisten.clear()
            wanted = self.wanted(session)
            if not wanted:
                await self.relisten.wait()
                continue
            began = monotonic()
            if await self.hold(session, wanted):
                short = 0 if monotonic() - began > HELD_SECONDS else short + 1
                await self.rest(short)
            self.changed.set()

    async def rest(self, short: int) -> None:
        """Wait before the stream is opened again, unless there are new wishes."""
        await ends_within(min(RETRY_SECONDS * 2 ** min(short, 16), LONGEST_RETRY), self.relisten.wait())

    def wanted(self, session: ServerSession) -> dict[str, Json]:
        offered = session.welcome.capabilities
        kinds = {
            flag: True
            for kind, flag in LIST_KINDS.items()
            if isinstance(offered.get(kind), dict) and offered[kind].get("listChanged")
        }
        return {**kinds, "resourceSubscriptions": list(self.watched)} if self.watched else kinds

    async def hold(self, session: ServerSession, wanted: Mapping[str, Json]) -> bool:
        """Listen until the wishes change, or the stream ends, which is True. A server that does not offer it is not
        asked again before there are other wishes."""
        order = Order(
            method=LISTEN,
            params={"notifications": wanted},
            deadline=monotonic() + LISTEN_SECONDS,
            talk=Subscription(session),
        )
        listening = self.listening = asyncio.create_task(session.send(order))
        wish = asyncio.create_task(self.relisten.wait())
        try:
            await asyncio.wait([listening, wish], return_when=asyncio.FIRST_COMPLETED)
            if not listening.done():
                return False
            error = listening.exception()
            if isinstance(error, Broken) and not error.sent:
                raise error
            if not isinstance(error, RpcError):
                return True
            log.debug("%s does not offer subscriptions: %s", self.name, error)
            await wish
            return False
        finally:
            wish.cancel()
            listening.cancel()
            await asyncio.gather(wish, listening, return_exceptions=True)

    def wish(self, uri: str, *, wanted: bool) -> None:
        """Hear of one resource's changes, or no longer; the stream is opened anew with the wishes."""
        if wanted == (uri in self.watched):
            return
        if wanted:
            self.watched[uri] = None
        else:
            del self.watched[uri]
        self.relisten.set()

"""`McpSource`: one MCP server as a source of tools, resources and prompts.

It turns what the server lists into definitions, a call into `tools/call`, and the server's failures into
the gateway's errors. It never reconnects by itself: `connect` and `watch` raise, and their caller tries again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Self

from agent_gate.config.servers.settings import ServerSettings
from agent_gate.core.call import Call, Result, sent_arguments
from agent_gate.core.credentials import CallerSignInNeeded, SignInNeeded, account_holder
from agent_gate.core.ids import fold_namespace
from agent_gate.core.ports import Conversation, Job
from agent_gate.core.tool import Definition, Json
from agent_gate.errors import CatalogError, GatewayError, ToolNotFound, UpstreamError
from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.names import CALL_TOOL, INPUT_REQUIRED, LIST_TOOLS, PROMPTS_CHANGED, RESOURCES_CHANGED
from agent_gate.mcp.results import NoResult, read_envelope, read_tool_result, without_reserved
from agent_gate.mcp.revisions import Revision
from agent_gate.observe.trace import outgoing
from agent_gate.sources.mcp.calling.bridge import Bridge
from agent_gate.sources.mcp.calling.bucket import Bucket
from agent_gate.sources.mcp.calling.failures import FAILURES, call_error, connect_error, no_result
from agent_gate.sources.mcp.calling.parking import ParkedElsewhere
from agent_gate.sources.mcp.clean import MAX_TITLE, clean
from agent_gate.sources.mcp.lists.budget import Budget
from agent_gate.sources.mcp.lists.links import RESOURCE, Links
from agent_gate.sources.mcp.lists.listing import MOST_PAGES, Tools, list_context, list_tools
from agent_gate.sources.mcp.lists.mirrors import param_headers
from agent_gate.sources.mcp.lists.watcher import MOST_LISTS, Watcher
from agent_gate.sources.mcp.sessions.connections import ServerSessions
from agent_gate.sources.mcp.sessions.dial import identity
from agent_gate.sources.mcp.sessions.meeting import about
from agent_gate.sources.mcp.sessions.session import ServerSession
from agent_gate.sources.mcp.wire.order import INPUTS, Order
from agent_gate.sources.mcp.wire.problems import Broken, InputClosed, Throttled
from agent_gate.sources.state import ConnectionGone
from agent_gate.sources.toolbox import Toolbox

log = logging.getLogger("agent_gate.sources.mcp")

LIST_SECONDS = 30.0
CONTEXT_NOTICES = {
    "prompts": PROMPTS_CHANGED,
    "resources": RESOURCES_CHANGED,
    "resourceTemplates": RESOURCES_CHANGED,
}
SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE = "logging/setLevel", "resources/subscribe", "resources/unsubscribe"
NoticeListener = Callable[[str, Mapping[str, Json]], None]


class McpSource:
    """A client of one MCP server, of any revision, over stdio, Streamable HTTP or SSE."""

    kind = "mcp"
    unwell: str | None = None
    about = ""

    def __init__(self, settings: ServerSettings, toolbox: Toolbox) -> None:
        self.settings = settings
        self.key = settings.key
        self.namespace = fold_namespace(settings.key)
        self.title = settings.title
        self.announce = toolbox.announce
        self.clock = toolbox.clock
        self.access = toolbox.access(identity(settings), masks=settings.mask_results)
        self.connections = ServerSessions(
            settings,
            toolbox.pool,
            self.access,
            toolbox.memory,
            self.hear,
            toolbox.max_bytes,
            toolbox.lender,
        )
        self.others = toolbox.others
        self.bridge = Bridge("" if self.others is None else self.others.here)
        self.bucket = Bucket(settings.rate_limit.max_requests_per_minute, toolbox.clock, self.title)
        self.pages = Budget(MOST_PAGES, toolbox.clock)
        self.watcher = Watcher(
            self.connections, self.refresh, self.note_unwell, Budget(MOST_LISTS, toolbox.clock), self.key
        )
        self.tools = Tools()
        self.links = Links()
        self.lists: Mapping[str, tuple[Json, ...]] = {}
        self.listeners: list[NoticeListener] = []

    @property
    def context(self) -> "McpSource | None":
        """Itself, unless each caller has an account of its own: lists of resources are nobody else's business."""
        return None if self.connections.per_caller else self

    async def forget(self, caller: str) -> None:
        await self.connections.forget(caller)

    async def try_as(self, caller: str) -> None:
        """See whether the server lets this caller in, in a session of its own."""
        deadline = self.clock.monotonic() + LIST_SECONDS
        order = Order(method=LIST_TOOLS, params={}, deadline=deadline, caller=caller)
        try:
            await (await self.connections.find_or_open(order)).send(order)
        except FAILURES as error:
            raise connect_error(error, self.title) from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.bridge.parking.close()
        await self.connections.close()

    async def connect(self) -> Sequence[Definition]:
        self.unwell = None
        try:
            session = await self.connections.open()
            await self.list(session)
            await self.watch_again(session)
            self.about = self._introduced(session)
        except FAILURES as error:
            await self.connections.close()
            raise connect_error(error, self.title) from None
        except (asyncio.CancelledError, GatewayError):
            await self.connections.close()
            raise
        log.debug(
            "%s: connected, revision %s, %d tools",
            self.key,
            session.revision.name,
            len(self.tools.definitions),
        )
        return self.tools.definitions

    def _introduced(self, session: ServerSession) -> str:
        """What the server says of itself, after the name that the operator gave it."""
        said = about(session.welcome)
        return said if self.title == self.key else f"{self.title} {said}"

    async def list(self, session: ServerSession) -> None:
        deadline = self.clock.monotonic() + LIST_SECONDS
        try:
            tools = await list_tools(session, self.settings, deadline, self.pages)
        except CatalogError as error:
            if not self.tools.definitions:
                raise
            self.note_unwell(error.message, logging.ERROR)
            return
        self.unwell = None
        for left_out in set(tools.excluded) - set(self.tools.excluded):
            log.warning("%s: tool %s is left out: %s", self.key, left_out.name, left_out.reason)
        self.tools = tools
        if self.context is not None:
            self.lists = await list_context(session, deadline, self.pages)
        self.links.note_listed(tools.definitions)

    @property
    def watched(self) -> bool:
        """Whether some agent is subscribed to one of the resources."""
        return bool(self.watcher.watched)

    async def watch_again(self, session: ServerSession) -> None:
        """Subscribe anew at a server on demand: that it was away is not seen in the catalog, so nobody else does."""
        if session.revision.listens_by_request or self.settings.connect != "on-demand":
            return
        deadline = self.clock.monotonic() + LIST_SECONDS
        for uri in list(self.watcher.watched):
            try:
                await session.send(Order(method=SUBSCRIBE, params={"uri": uri}, deadline=deadline))
            except RpcError as error:
                log.info("%s: %s is not watched any more: %s", self.key, uri[:200], error.message)

    async def refresh(self) -> bool:
        """List again after a change notice, and announce the tools if they differ. False where the server cannot now."""
        before, lists = self.tools.definitions, self.lists
        try:
            await self.list(self.connections.current())
        except (RpcError, Throttled, TimeoutError) as error:
            self.note_unwell(f"its changed lists cannot be read: {connect_error(error, self.title).message}")
            return False
        if self.tools.definitions != before:
            await self.announce(self.key, self.tools.definitions)
        for kind, method in CONTEXT_NOTICES.items():
            if self.lists.get(kind) != lists.get(kind):
                self.tell(method, {})
        return True

    def note_unwell(self, reason: str, level: int = logging.WARNING) -> None:
        """Show what is wrong; it is logged once, however often it is found again."""
        if reason != self.unwell:
            log.log(level, "%s: %s", self.key, reason)
        self.unwell = reason

    async def watch(self) -> None:
        try:
            await self.watcher.run()
        except FAILURES as error:
            raise connect_error(error, self.title) from None

    async def answer(self, job: Job) -> Result:
        call, tool = job.case.call, job.case.tool
        if tool.definition.method:
            return Result(await self.read(call, tool.definition.method, job.deadline))
        route = self.tools.routes.get(tool.definition.name)
        if route is None:
            raise ToolNotFound(f"{self.title} no longer has the tool {tool.upstream}")
        arguments = sent_arguments(call) if call.filled else call.arguments
        order = Order(
            method=CALL_TOOL,
            params={"name": route.upstream, "arguments": arguments},
            deadline=job.deadline,
            caller=self.holder_of(call) if self.connections.per_caller else call.caller.name,
            conversation=call.conversation,
            sender=call.sender,
            meta=call.meta if call.trace is None else traced(call),
            headers=param_headers(route.headers, arguments) if route.headers else None,
            idempotent=route.idempotent,
        )
        try:
            try:
                body = await self.attempt(order)
            except (Throttled, Broken) as failure:
                body = await self.send_again(order, failure)
        except ParkedElsewhere as parked:
            assert self.others is not None
            return await self.others.ask(self.key, job, of=parked.gateway)
        except FAILURES as error:
            raise self.failure(error, order) from None
        return self.check_result(self.access.masked(body), order)

    def holder_of(self, call: Call) -> str:
        """Whose account and whose sessions serve a call, where not everybody has the same."""
        return account_holder(call.caller.name, call.caller.person)

    def failure(self, error: Exception, order: Order) -> GatewayError:
        """What a failed call is told; one that found the connection gone may wait for the next."""
        told = call_error(error, self.title, order.method)
        gone = isinstance(error, InputClosed) or not self.connections.usable
        if isinstance(error, Broken) and not error.sent and gone:
            return ConnectionGone(told.message)
        if self.connections.per_caller and isinstance(told, SignInNeeded):
            return CallerSignInNeeded(told.message)
        return told

    def check_result(self, body: bytes, order: Order) -> Result:
        """What came as a result, checked: whoever reads it later can rely on its shape."""
        try:
            result = read_tool_result(body, order.takes)
        except NoResult as error:
            raise no_result(self.title, order.method, str(error), body) from None
        if body.find(RESOURCE) >= 0:
            self.links.note(body)
        asks = result.result_type == INPUT_REQUIRED
        return Result(without_reserved(body, result), "mcp", result.error is True, asks)

    async def read(self, call: Call, method: str, deadline: float) -> bytes:
        """A resource or a prompt. What a result led to may exist only in the session that the result came from."""
        plain, meta = split_params({**call.arguments, "_meta": call.meta})
        order = Order(
            method=method,
            params=plain,
            deadline=deadline,
            caller=self.holder_of(call) if self.connections.per_caller else call.caller.name,
            conversation=call.conversation,
            meta=meta,
            shared=plain.get("uri") not in self.links,
        )
        return await self.ask_server(order)

    def attempt(self, order: Order) -> Awaitable[bytes]:
        """Send over the session at hand, where there is one and nothing limits how often it is used."""
        session = None if self.bucket.limits else self.connections.at_hand(order)
        return self.bridge.run(order, session) if session is not None else self.send_opening(order)

    async def send_opening(self, order: Order) -> bytes:
        """Send within the server's rate, over a session that is opened if it has to be."""
        if self.bucket.limits:
            await self.bucket.take(order.deadline)
        return await self.bridge.run(order, await self.connections.find_or_open(order))

    async def send_again(self, order: Order, failure: Throttled | Broken) -> bytes:
        """Send once more where nothing can have run."""
        if isinstance(failure, Throttled):
            self.bucket.block(failure.after)
        elif failure.sent and not order.idempotent:
            raise failure
        return await self.send_opening(order)

    async def deliver(self, order: Order) -> bytes:
        try:
            return await self.attempt(order)
        except (Throttled, Broken) as failure:
            return await self.send_again(order, failure)

    def offers(self, kind: str) -> Sequence[Json]:
        return self.lists.get(kind, ())

    def leads_to(self, uri: str) -> bool:
        return uri in self.links

    def capabilities(self) -> Mapping[str, Json]:
        main = self.connections.main
        return {} if main is None else main.welcome.capabilities

    async def forward(
        self, method: str, params: Mapping[str, Json], conversation: Conversation | None, deadline: float
    ) -> bytes:
        plain, meta = split_params(params)
        main = self.connections.main
        if method == UNSUBSCRIBE:
            self.watcher.wish(str(plain.get("uri")), wanted=False)
        if main is not None and self.settle_here(method, plain, main.revision):
            return b"{}"
        order = Order(
            method=method, params=plain, deadline=deadline, conversation=conversation, meta=meta, shared=True
        )
        body = await self.ask_server(order)
        if method == SUBSCRIBE:
            self.watcher.wish(str(plain.get("uri")), wanted=True)
        return body

    async def ask_server(self, order: Order) -> bytes:
        try:
            body = self.access.masked(await self.deliver(order))
            return without_reserved(body, read_envelope(body))
        except NoResult as error:
            raise UpstreamError(
                f"{self.title} did not answer {order.method} with a result: {error}"
            ) from None
        except FAILURES as error:
            raise call_error(error, self.title, order.method) from None

    def settle_here(self, method: str, params: Mapping[str, Json], revision: Revision) -> bool:
        """Requests that the server's revision does not have: they become settings of what is sent later."""
        if method == SET_LEVEL and revision.levels_in_requests:
            self.bridge.log_level = clean(params.get("level"), MAX_TITLE) or self.bridge.log_level
            return True
        if method == SUBSCRIBE and revision.listens_by_request:
            self.watcher.wish(str(params.get("uri")), wanted=True)
        return method in (SUBSCRIBE, UNSUBSCRIBE) and revision.listens_by_request

    def listen(self, listener: NoticeListener) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def hear(self, method: str, params: Mapping[str, Json]) -> None:
        """A notice of the server that belongs to no call."""
        if method.endswith("/list_changed"):
            self.watcher.changed.set()  # who sees a difference is told of it when it is known
            return
        self.tell(method, params)

    def tell(self, method: str, params: Mapping[str, Json]) -> None:
        for listener in tuple(self.listeners):
            listener(method, params)


def traced(call: Call) -> Mapping[str, Json]:
    """The request's `_meta`, with this gateway's own span as the parent of what the server does."""
    trace = outgoing(call)
    return call.meta if trace is None else {**call.meta, "traceparent": trace}


def split_params(params: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    """A request's own parameters, and its `_meta` together with the answers of an earlier round."""
    own = {name: value for name, value in params.items() if name != "_meta" and name not in INPUTS}
    return own, {**(params.get("_meta") or {}), **{name: params[name] for name in INPUTS if name in params}}

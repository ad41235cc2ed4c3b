"""WebSocket JSON-RPC on `/` and `/ws`: authenticate, then call tools and read back what was kept.

A connection costs no task; each message in work has one, which outlives its connection, so that a call goes on
when its sender is gone and its result is kept.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import msgspec

from agent_gate.access.door import Door, check_audience
from agent_gate.access.tokens import digest
from agent_gate.calls import Calls
from agent_gate.calls.meta import Visible
from agent_gate.client.wire import SESSION_OVER
from agent_gate.core.approval import Approval
from agent_gate.core.call import Call, Caller, Outcome, Pending, State
from agent_gate.core.ports import Clock
from agent_gate.core.tasks import KeptTasks
from agent_gate.errors import (
    DependencyUnavailable,
    GatewayError,
    Internal,
    InvalidArgs,
    OutcomeUnknown,
    RateLimited,
    Unauthorized,
)
from agent_gate.net.http import Request, Response, error_response, refusal
from agent_gate.net.websocket import GOING_AWAY
from agent_gate.results.kept import NO_RESULT
from agent_gate.surfaces.requestlog import watch_message
from agent_gate.surfaces.websocket.agent import POLICY_VIOLATION, Agent
from agent_gate.surfaces.websocket.before import Predecessors
from agent_gate.surfaces.websocket.describe import error_of, executed
from agent_gate.surfaces.websocket.drops import Drops
from agent_gate.surfaces.websocket.messages import (
    UNKNOWN_METHOD,
    SocketMessage,
    SocketRefused,
    error_text,
    notification_text,
    parse,
    result_text,
)
from agent_gate.surfaces.websocket.methods import Extra, Methods, call_of, meta_call, optional_text
from agent_gate.surfaces.websocket.strangers import Strangers

log = logging.getLogger("agent_gate.websocket")
PATHS = frozenset({"/", "/ws"})
EXECUTE = "tool_execute"
PENDING_RESULTS = "get_pending_results"
GOODBYES = (1000, 1001)
IN_USE = "belongs to a request that is still open"
STOPPING = "The gateway is stopping. Nothing was called: connect again, and send it again"
ELSEWHERE = "the gateway is stopping; connect again"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """What one connection may cost. Callers without a rate limit may send as fast as they like."""

    auth_seconds: float = 10.0
    strangers: int = 256
    first_message: int = 64 * 1024
    messages_per_second: int = 500
    in_flight: int = 256
    room_seconds: float = 20.0


class WebSocketSurface:
    """`upgrade` is what the listener calls; `visible` is what a caller's listings show; `keep` stores an
    outcome that could not be delivered; `extra` adds the meta-tools, of which only `tool_execute` calls anything;
    `session_over` hears of the sessions that nobody goes on with."""

    def __init__(
        self,
        *,
        calls: Calls,
        door: Door,
        visible: Visible,
        keep: Callable[[Call, Outcome], None],
        before: Predecessors,
        clock: Clock,
        extra: Mapping[str, Extra] | None = None,
        session_over: Callable[[str, str], None] = lambda _caller, _session: None,
        limits: AgentLimits | None = None,
    ) -> None:
        self._calls, self._door, self._keep, self._before = calls, door, keep, before
        self._clock, self._session_over = clock, session_over
        self._methods, self._extra = Methods(calls, visible), extra or {}
        self._limits = limits or AgentLimits()
        self.room_seconds = self._limits.room_seconds
        self._strangers = Strangers(self._limits.strangers, self._limits.auth_seconds, self._too_late)
        self._agents: set[Agent] = set()
        self._tasks = KeptTasks(log, "A message's task failed")
        self._watching: dict[str, tuple[Agent, Call]] = {}
        self._asked_about: set[str] = set()
        self._drops = Drops()
        self._stopping = False
        self._unsubscribe = calls.inbox.subscribe(self._tell_asked)

    @property
    def connected(self) -> int:
        """How many authenticated agents are here."""
        return len(self._agents)

    # The way in

    def upgrade(self, request: Request) -> Agent | Response:
        """A connection for this request, or the answer that refuses it."""
        if request.path not in PATHS:
            return refusal(404, "INVALID_ARGS", "WebSocket is spoken on / and /ws")
        if self._stopping:
            return error_response(stopping())
        try:
            caller = self._door.enter(request) if request.header(b"authorization") is not None else None
            proof = self._door.proof(request)
            session = session_name(request)
        except Unauthorized as error:
            return self._door.refusal(error)
        except GatewayError as error:
            return error_response(error)
        return Agent(self, request.peer, caller, session, proof)

    def opened(self, agent: Agent) -> None:
        if agent.caller is None:
            self._strangers.add(agent)
        else:
            self._welcome(agent, agent.caller)

    def _welcome(self, agent: Agent, caller: Caller) -> None:
        agent.caller = caller
        self._strangers.remove(agent)
        self._agents.add(agent)
        self._door.backoff.succeeded(agent.peer)

    def _too_late(self, agent: Agent) -> None:
        agent.expel(None, Unauthorized("Authentication timeout"))

    def closed(self, agent: Agent, code: int, reason: str) -> None:
        self._strangers.remove(agent)
        self._agents.discard(agent)
        self._leave(agent, code)
        self._end_session(agent, reason)
        who = agent.caller.name if agent.caller is not None else "not authenticated"
        self._drops.note(who, agent.peer, code, reason, agent.working)

    def _leave(self, agent: Agent, code: int) -> None:
        """Who says goodbye has what was sent to it; of one that was cut nobody knows."""
        if agent.acknowledges or agent.caller is None:
            return
        self._before.closed(agent.caller.name, agent.session)
        if code in GOODBYES:
            self._arrived(agent, agent.caller)

    def _end_session(self, agent: Agent, reason: str) -> None:
        """Nobody can go on with a session that nobody named, nor does one that its client says is over."""
        over = agent.session if reason == SESSION_OVER and agent.is_named else agent.alone
        if agent.caller is not None and over is not None:
            self._session_over(agent.caller.name, over)

    # Messages

    def _arrived(self, agent: Agent, caller: Caller) -> None:
        """An agent that does not acknowledge shows that what was sent to it before has arrived."""
        if agent.sent:
            self._tasks.start(self._acknowledge(caller, agent.take_sent()))

    async def _acknowledge(self, caller: Caller, call_ids: list[str]) -> None:
        await self._calls.acknowledge(caller, call_ids)

    def received(self, agent: Agent, data: str | bytes) -> None:
        if agent.caller is None:
            self._introduce(agent, data)
            return
        try:
            message = parse(data)
            if agent.live and message.id in agent.live:
                raise SocketRefused(InvalidArgs(f"Invalid request: the id {message.id!r:.80} {IN_USE}"))
            self._dispatch(agent, agent.caller, message)
        except SocketRefused as refused:
            agent.fail(refused.ident, refused.error, refused.code)

    def _dispatch(self, agent: Agent, caller: Caller, message: SocketMessage) -> None:
        if agent.sent and message.method != PENDING_RESULTS:
            self._arrived(agent, caller)
        if caller.calls_per_minute and agent.too_fast(
            self._clock.monotonic(), self._limits.messages_per_second
        ):
            raise SocketRefused(
                RateLimited("Too many messages in one second", retry_after=1.0), ident=message.id
            )
        if message.method == "tool_request":
            self._call_tool(agent, caller, message)
        elif message.method == "auth":
            self._authenticate(agent, message)
        elif (extra := self._extra.get(message.method)) is not None:
            self._call_meta_tool(agent, caller, message, extra)
        elif (method := self._methods.find(message.method)) is not None:
            self._look(agent, message, lambda: method(agent, caller, message))
        elif message.id is not None:
            raise SocketRefused(InvalidArgs("Unknown method"), ident=message.id, code=UNKNOWN_METHOD)

    def _introduce(self, agent: Agent, data: str | bytes) -> None:
        """The first message of a stranger must be `auth`; anything else ends the connection."""
        try:
            if len(data) > self._limits.first_message:
                raise SocketRefused(Unauthorized("Not authenticated"))
            message = parse(data)
            if message.method != "auth":
                raise SocketRefused(Unauthorized("Not authenticated"), ident=message.id)
        except SocketRefused as refused:
            agent.expel(refused.ident, refused.error, refused.code)
        else:
            self._authenticate(agent, message)

    def _authenticate(self, agent: Agent, message: SocketMessage) -> None:
        said = message.params.get("token")
        token = said if isinstance(said, str) else ""
        try:
            caller = self._login(agent, token)
            session = optional_text(message.params, "session")
        except GatewayError as error:
            agent.expel(message.id, error)
            return
        agent.proof = digest(token)
        if session is not None:
            agent.session = session
        if agent.caller is None and message.params.get("acknowledges") is not True:
            agent.acknowledges = False
            if not agent.is_named:
                agent.before = self._tasks.start(self._before.note_opened(caller.name, agent.session))
        self._welcome(agent, caller)
        status = {"status": "authenticated", "agent": caller.name}
        agent.send(result_text(message.id, msgspec.json.encode(status)))

    def _login(self, agent: Agent, token: str) -> Caller:
        """The caller of this token. Failures are counted per address; a connection keeps its caller."""
        try:
            caller = self._door.tokens.authenticate(token)
            if caller.audience:
                check_audience(caller, "/ws")
        except Unauthorized:
            self._door.failed(agent.peer)
            raise
        if agent.caller is not None and agent.caller.name != caller.name:
            raise Unauthorized("This connection belongs to another agent; open a new one")
        return caller

    # Work

    async def _answer(self, agent: Agent, message: SocketMessage, result: Awaitable[bytes]) -> None:
        try:
            text = result_text(message.id, await result)
        except GatewayError as error:
            text = error_text(message.id, error)
        except Exception:  # the boundary: whatever fails inside, the agent hears of it
            log.exception("The method %s failed", message.method)
            text = error_text(
                message.id, Internal("Something went wrong inside the gateway; its log says what")
            )
        if message.id is not None:
            await agent.deliver(text)

    def _check_room(self, count: int, message: SocketMessage) -> None:
        if count >= self._limits.in_flight:
            error = RateLimited(f"{count} requests of this connection are open already", retry_after=1.0)
            raise SocketRefused(error, ident=message.id)

    def _call_meta_tool(self, agent: Agent, caller: Caller, message: SocketMessage, extra: Extra) -> None:
        call = meta_call(agent, caller, message)
        if message.method != EXECUTE:
            self._look(agent, message, lambda: extra(call))
            return
        self._check_room(agent.working, message)
        if self._stopping:
            raise SocketRefused(stopping(), ident=message.id)
        agent.begin(message.id, call.id)
        self._tasks.start(self._execute(agent, message, call, extra), call.id)

    async def _execute(self, agent: Agent, message: SocketMessage, call: Call, extra: Extra) -> None:
        """A call by way of `tool_execute`, which can be cancelled like any other."""
        ended = watch_message("websocket", message.method, call.tool)
        try:
            await self._answer(agent, message, extra(call))
        finally:
            ended()
            agent.end(message.id)
            if self._stopping:
                self._send_on(agent)

    def _look(self, agent: Agent, message: SocketMessage, find: Callable[[], Awaitable[bytes]]) -> None:
        self._check_room(agent.asking, message)
        agent.asking += 1
        agent.open(message.id)
        self._tasks.start(self._look_up(agent, message, find()))

    async def _look_up(self, agent: Agent, message: SocketMessage, found: Awaitable[bytes]) -> None:
        ended = watch_message("websocket", message.method, message.params)
        try:
            await self._answer(agent, message, found)
        finally:
            ended()
            agent.asking -= 1
            agent.close(message.id)
            if self._stopping:
                self._send_on(agent)

    def _call_tool(self, agent: Agent, caller: Caller, message: SocketMessage) -> None:
        if message.id is None:
            raise SocketRefused(InvalidArgs("Missing request id"))
        if self._stopping:
            raise SocketRefused(stopping(), ident=message.id)
        self._check_room(agent.working, message)
        try:
            call = call_of(agent, caller, message)
        except InvalidArgs as error:
            raise SocketRefused(error, ident=message.id) from None
        agent.begin(message.id, call.id)
        if call.conversation is not None or not agent.acknowledges:
            self._watching[call.id] = (agent, call)
        if call.conversation is not None:
            agent.send(notification_text("accepted", {"id": message.id, "request_id": call.id}))
        self._tasks.start(self._run(agent, call), call.id)

    async def _run(self, agent: Agent, call: Call) -> None:
        """One call to its end, which is when its reply is out of our hands."""
        ended = watch_message("websocket", "tool_request", call.tool)
        try:
            await self._reply(agent, call, await self._await_outcome(call))
        finally:
            ended()
            agent.end(call.client_id)
            self._watching.pop(call.id, None)
            self._asked_about.discard(call.id)
            if self._stopping:
                self._send_on(agent)

    async def _reply(self, agent: Agent, call: Call, outcome: Outcome) -> None:
        """Sent if somebody is there, kept if not."""
        if not await agent.deliver(self._text(call, outcome)):
            self._keep(call, outcome)
        elif not agent.acknowledges and (outcome.call_id != call.id or call.id in self._asked_about):
            agent.note_sent([outcome.call_id])

    def _text(self, call: Call, outcome: Outcome) -> str:
        try:
            body = executed(outcome)
        except Exception:  # the boundary: whatever the tool answered, the agent is answered
            log.exception("The result of %s cannot be shown", call.id)
            return error_text(call.client_id, OutcomeUnknown(NO_RESULT), request_id=outcome.call_id)
        if body is not None:
            return result_text(call.client_id, body)
        return error_text(call.client_id, error_of(outcome), request_id=outcome.call_id)

    async def _await_outcome(self, call: Call) -> Outcome:
        try:
            outcome = await self._calls.run(call)
            while isinstance(outcome, Pending):
                outcome = await self._calls.await_outcome(outcome.call_id, call.caller, wait=None)
        except Exception:  # the boundary: whatever fails inside, the agent hears of it
            log.exception("The call %s failed inside the gateway", call.id)
            return self._calls.fault(call)
        return outcome

    def _tell_asked(self, approval: Approval) -> None:
        """Tell an agent that wants to know what its call waits for."""
        watcher = self._watching.get(approval.call_id)
        if watcher is None or approval.state is not State.PENDING:
            return
        agent, call = watcher
        self._asked_about.add(call.id)
        if call.conversation is not None:
            told = {
                "id": call.client_id,
                "request_id": call.id,
                "signature": approval.signature,
                "expires_at": approval.asked.expires_at,
            }
            agent.send(notification_text("waiting", told))

    # The way out

    def refresh(self) -> None:
        """After a reload: agents whose token is gone or another's are closed, the others get their new limits."""
        for agent in list(self._agents):
            name = agent.caller.name if agent.caller is not None else ""
            caller = self._door.tokens.still(agent.proof, name)
            if caller is None:
                agent.ws.close(POLICY_VIOLATION, "the token was revoked")
            else:
                agent.caller = caller

    async def drain(self, seconds: float) -> None:
        """Let calls that run end and be answered, and send each agent on when its own are; those that wait for a person
        are left to the store."""
        if not self._stopping:
            self._unsubscribe()
        self._stopping = True
        for agent in list(self._agents):
            self._send_on(agent)
        deadline = asyncio.get_running_loop().time() + seconds
        while busy := self._busy():
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                break
            await asyncio.wait(busy, timeout=left)
        await self._tasks.cancel()
        self._strangers.close()
        self._drops.close()

    def _send_on(self, agent: Agent) -> None:
        """Have an agent connect to another gateway, where nothing runs for it here."""
        if not agent.asking and not any(map(self._calls.runs, (agent.live or {}).values())):
            agent.ws.close(GOING_AWAY, ELSEWHERE)

    def _busy(self) -> set[asyncio.Task[None]]:
        runs = self._calls.runs
        return {task for task, call_id in self._tasks.running.items() if not call_id or runs(call_id)}


def stopping() -> DependencyUnavailable:
    """Says so in a way that programs understand: what was refused may be sent again elsewhere."""
    return DependencyUnavailable(STOPPING, details={"stopping": True})


def session_name(request: Request) -> str | None:
    """The `Agent-Session` header."""
    value = request.header(b"agent-session")
    return optional_text({"session": value.decode("latin-1")}, "session") if value is not None else None

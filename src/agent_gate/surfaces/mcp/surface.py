"""`McpSurface`: MCP over Streamable HTTP, for the revisions with sessions and those without, on one path.

A request is answered with plain JSON unless something must be sent before the answer; then the response
turns into an event stream.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from agent_gate.access.door import Door
from agent_gate.calls import Calls
from agent_gate.calls.meta import Visible
from agent_gate.core.call import Caller
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock, SystemClock
from agent_gate.core.tasks import KeptTasks
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError
from agent_gate.mcp.errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    NO_MESSAGE_STATUSES,
    NO_SESSION,
    STATUSES,
    RpcError,
)
from agent_gate.mcp.headers import LAST_EVENT, SESSION, VERSION, field
from agent_gate.mcp.messages import Message, error_response, response
from agent_gate.mcp.names import CANCELLED, INITIALIZE, LISTEN, META_VERSION
from agent_gate.mcp.revisions import BY_HEADER, NEWEST
from agent_gate.net.http import HttpAnswer, Request, Response, StreamResponse, refusal
from agent_gate.surfaces.mcp.changes.notices import Listener, Notices
from agent_gate.surfaces.mcp.changes.subscriptions import Listen, Watches
from agent_gate.surfaces.mcp.context.contexts import Contexts, ContextSources
from agent_gate.surfaces.mcp.context.reads import Denies, Reads, nothing_denied
from agent_gate.surfaces.mcp.http.challenge import WELL_KNOWN, metadata, more_needed, turned_away
from agent_gate.surfaces.mcp.http.posting import (
    EVENTS,
    STREAM_HEADERS,
    HttpVisit,
    Repeated,
    accepts,
    check_media,
    check_version,
    refuse_reuse,
    visit_alone,
    visit_in_session,
)
from agent_gate.surfaces.mcp.incoming.headers import mismatch
from agent_gate.surfaces.mcp.incoming.params import CallParams, Params, read_message, read_object, read_params
from agent_gate.surfaces.mcp.methods import FAULT, McpMethods
from agent_gate.surfaces.mcp.modes import ToolMode
from agent_gate.surfaces.mcp.sessions.sessions import McpSession, McpSessions
from agent_gate.surfaces.mcp.sessions.shared import SharedSessions
from agent_gate.surfaces.mcp.sessions.streams import Stream
from agent_gate.surfaces.mcp.tools.calling import BEAT_SECONDS, HOLD_SECONDS, Calling
from agent_gate.surfaces.mcp.tools.lists import ToolLists
from agent_gate.surfaces.mcp.tools.sealing import StateSealer
from agent_gate.surfaces.mcp.tools.step_up import ScopeNeeded
from agent_gate.surfaces.mcp.visit import Visit, named

log = logging.getLogger("agent_gate.surfaces.mcp")

SESSION_FIELD, VERSION_FIELD, LAST_EVENT_FIELD = (field(name) for name in (SESSION, VERSION, LAST_EVENT))

PATHS = {b"/mcp": "", b"/mcp/full": "full", b"/mcp/proxy": "proxy", b"/mcp/gateway": "gateway"}
ACCEPTED = Response(202)
NO_ANSWER = Response(200, b"", (), EVENTS)
"""An event stream without events: the end of a request that was cancelled."""
MOST_LISTENS = 64
CHANGING = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""The methods after which a session wants to hear something else."""

LOST = (
    "The events after Last-Event-ID are no longer kept, and its request may have run: check before you make it again, "
    "or leave the header out"
)
NO_MESSAGE = Message()
DRAIN_LOOK = 0.02


class UnknownSession(RpcError):
    """The session is unknown, ended or another caller's; all three look the same."""

    def __init__(self) -> None:
        super().__init__(NO_SESSION, "Session not found; send initialize to begin a new one")


class McpSurface:
    """Serves `/mcp`. `modes` adds other ways to show tools under `/mcp/NAME`; `seal_key` is the installation's."""

    def __init__(
        self,
        calls: Calls,
        door: Door,
        shelf: Shelf,
        contexts: ContextSources,
        visible: Visible,
        *,
        seal_key: bytes,
        denies: Denies = nothing_denied,
        modes: Mapping[str, ToolMode] | None = None,
        clock: Clock | None = None,
        hold: float = HOLD_SECONDS,
        beat: float = BEAT_SECONDS,
        issuer: Callable[[], str | None] = lambda: None,
        shared: SharedSessions | None = None,
        session_over: Callable[[str, str], None] = lambda _caller, _session: None,
    ) -> None:
        """`shared` are the sessions of all gateways, where there are others; `session_over` hears of each that ended."""
        self._issuer, self._shared, self._session_over = issuer, shared, session_over
        self._clock = clock = clock or SystemClock()
        sealer = StateSealer(seal_key, clock)
        self.modes = dict(modes or {})
        self.door = door
        self.lists = ToolLists(visible, self.modes)
        self.calling = Calling(calls, shelf, sealer, clock, self.modes, hold=hold, beat=beat)
        self.contexts = Contexts(contexts, shelf, Reads(self.calling, shelf, denies), clock)
        self.watches = Watches(self.contexts, clock)
        self.methods = McpMethods(self.lists, self.contexts, self.watches)
        self.notices = Notices(self.lists, self.contexts, contexts, shelf, self._returned)
        self.sessions = McpSessions(clock, self.notices.join, self.leave)
        self._checks = Repeated(shelf)
        self._listens: dict[Listen, Stream] = {}
        self._tasks = KeptTasks(log, "A task of the MCP surface failed")
        self._under_way: set[HttpVisit] = set()
        self._closing = False
        if shared is not None:
            shared.listen(self._hear_elsewhere)

    def handle(self, request: Request) -> HttpAnswer | Awaitable[HttpAnswer]:
        mode = PATHS.get(request.target)
        if mode is None:
            if request.path.startswith(WELL_KNOWN):
                return metadata(request)
            mode = PATHS.get(request.path.encode("ascii"))
            if mode is None:
                return refusal(404, "INVALID_ARGS", "MCP is served at /mcp")
        try:
            caller = self.door.enter(request)
        except GatewayError as error:
            return turned_away(request, error, self._issuer())
        if request.method == "POST":
            return self._post(request, caller, mode or caller.mode)
        return self._get_or_delete(request, caller)

    def _post(self, request: Request, caller: Caller, mode: str) -> HttpAnswer | Awaitable[HttpAnswer]:
        refused = check_media(request)
        if refused is not None:
            return refused
        message, version = NO_MESSAGE, request.fields.get(VERSION_FIELD)
        revision = BY_HEADER.get(version, NEWEST)
        try:
            message = read_message(request.body)
            if version is None or revision.has_sessions:
                return self._in_session(request, caller, mode, message, version)
            return self._alone(request, caller, mode, message, version)
        except UnknownSession as error:
            unknown = Response(404, error_response(bytes(message.id), error))
            return self._take_up(request, caller, unknown) if self._shared is not None else unknown
        except RpcError as error:
            status = (STATUSES if revision.errors_have_statuses else NO_MESSAGE_STATUSES).get(error.code, 200)
            return Response(status, error_response(bytes(message.id), error))
        except Exception:  # the boundary: a fault in one request is logged and answered, and stays its own
            log.exception("%s failed", message.method[:64])
            return Response(200, error_response(bytes(message.id), FAULT))

    def _alone(
        self, request: Request, caller: Caller, mode: str, message: Message, version: bytes
    ) -> HttpAnswer | Awaitable[HttpAnswer]:
        """A message of a revision without sessions."""
        if not message.id or not message.method:
            return self._accept_notification(message, version)
        params, meta = read_params(request.body, message)
        revision = self._checks.check(request, caller, version, message.method, params, meta)
        visit = visit_alone(request, caller, revision, mode, bytes(message.id), meta)
        if isinstance(params, dict) and (result := self.methods.quick(visit, message.method, params)):
            return Response(200, response(visit.id, result))
        if message.method == LISTEN and isinstance(params, dict):
            return self._listen(request, visit, params)
        request.on_disconnect(lambda: self.left(visit))
        return self._run(visit, message.method, params)

    def _accept_notification(self, message: Message, version: bytes) -> Response:
        """Accepted and without effect: a client of this revision cancels by closing its stream."""
        if not message.method:
            raise RpcError(INVALID_REQUEST, "Invalid request: this revision has no requests to answer")
        if version not in BY_HEADER:
            check_version(version, {})
        return ACCEPTED

    def left(self, visit: Visit) -> None:
        """The client hung up."""
        cancelling = self.calling.left(visit)
        if cancelling is not None:
            self._tasks.start(cancelling)

    def _listen(self, request: Request, visit: HttpVisit, params: dict[str, Any]) -> HttpAnswer:
        stream = Stream()
        listen = self.listen(visit, params.get("notifications"), stream.put)
        listen.proof = self.door.proof(request)
        self._listens[listen] = stream
        request.on_disconnect(lambda: self._unlisten(listen))
        return StreamResponse(200, stream.read_chunks(), STREAM_HEADERS)

    def listen(self, visit: Visit, wanted: Json, emit: Callable[[bytes], None]) -> Listen:
        """Begin a `subscriptions/listen`; whoever carries its messages calls `leave` in the end."""
        if self.notices.listening(visit.caller) >= MOST_LISTENS:
            raise RpcError(INTERNAL_ERROR, "Too many subscriptions are open; close one first")
        listen = Listen(visit, wanted, emit)
        listen.acknowledge()
        self.notices.join(listen)
        for uri in listen.uris:
            if self.contexts.owner(visit.caller, uri) is not None:
                self._tasks.start(self._watch(visit, listen, uri))
        return listen

    def leave(self, listener: Listener) -> None:
        """A session or a `subscriptions/listen` is over."""
        self.notices.leave(listener)
        if isinstance(listener, McpSession):
            self._session_over(listener.caller.name, listener.id)
        if listener in self.watches and not self._closing:
            self._tasks.start(self.watches.forget(listener))

    async def _watch(self, visit: Visit, listen: Listen, uri: str) -> None:
        if listen in self.notices:
            with suppress(RpcError):
                await self.watches.watch(visit, listen, uri)

    def _unlisten(self, listen: Listen) -> None:
        stream = self._listens.pop(listen, None)
        if stream is not None:
            self.leave(listen)
            stream.end()

    def _in_session(
        self, request: Request, caller: Caller, mode: str, message: Message, version: bytes | None
    ) -> HttpAnswer | Awaitable[HttpAnswer]:
        if message.method == INITIALIZE and message.id:
            return self._initialize(request, caller, mode, message)
        session = self._session(request, caller)
        if not message.id or not message.method:
            if session is None or self._take_unanswered(session, message) or self._shared is None:
                return ACCEPTED
            return self._pass_on(self._shared, session, request.body)
        params, meta = read_params(request.body, message)
        revision = session.revision if session is not None else BY_HEADER[version]
        if version is None and session is None and META_VERSION in meta:
            raise mismatch("MCP-Protocol-Version", "is missing")
        visit = visit_in_session(request, caller, revision, mode, session, bytes(message.id), meta)
        if session is not None and session.visits:
            refuse_reuse(session, visit.id)
        if isinstance(params, dict) and (result := self.methods.quick(visit, message.method, params)):
            return Response(200, response(visit.id, result))
        return self._run(visit, message.method, params)

    def _initialize(
        self, request: Request, caller: Caller, mode: str, message: Message
    ) -> HttpAnswer | Awaitable[HttpAnswer]:
        session, welcome = self.methods.initialize(caller, mode, message.params)
        session.proof = self.door.proof(request)
        if self._shared is not None:
            session.set_apart()
        self.sessions.add(session)
        headers = ((SESSION_FIELD, session.id.encode()),)
        answer = Response(200, response(bytes(message.id), welcome), headers)
        return answer if self._shared is None else self._keep_first(self._shared, session, answer)

    async def _keep_first(self, shared: SharedSessions, session: McpSession, answer: Response) -> HttpAnswer:
        """Where the store is away the session is this gateway's alone."""
        try:
            await shared.keep(session)
        except GatewayError as error:
            log.warning("A session is known to this gateway alone: %s", error.message)
        return answer

    async def _take_up(self, request: Request, caller: Caller, unknown: Response) -> HttpAnswer:
        """Go on with a session that began on another gateway; where there is none, the client begins anew."""
        ident = (request.header(SESSION_FIELD) or b"").decode("latin-1")
        assert self._shared is not None
        try:
            session = await self._shared.find(ident, caller)
        except GatewayError as error:
            return refusal(503, error.code, error.message)
        if session is None:
            return unknown
        if self.sessions.find(ident, caller) is None:
            session.proof = self.door.proof(request)
            self.sessions.add(session)
            visit = visit_in_session(request, caller, session.revision, session.mode, session, b"", {})
            for uri in sorted(session.watching):
                self._tasks.start(self._watch_again(visit, session, uri))
        again = self.handle(request)
        return again if isinstance(again, Response | StreamResponse) else await again

    async def _watch_again(self, visit: Visit, session: McpSession, uri: str) -> None:
        with suppress(RpcError):
            await self.watches.watch(visit, session, uri)

    def end_sessions(self, idents: Iterable[str] | None) -> None:
        """Clients ended these on another gateway."""
        for session in [one for one in self.sessions if idents is not None and one.id in idents]:
            self.sessions.end(session)

    def _session(self, request: Request, caller: Caller) -> McpSession | None:
        """The session a request names; one that is unknown, ended or another caller's is refused alike."""
        ident = request.fields.get(SESSION_FIELD)
        if ident is None:
            return None
        session = self.sessions.find(ident.decode("latin-1"), caller)
        if session is None:
            raise UnknownSession
        return session

    def _take_unanswered(self, session: McpSession, message: Message) -> bool:
        """Take a notification, or the client's answer to a question of ours; false where it is about nothing here."""
        if not message.method:
            return session.answered(message)
        if message.method != CANCELLED:
            return True
        visit = named(session.visits, read_object(message.params).get("requestId"))
        if visit is not None:
            self.cancel(visit)
        return visit is not None

    async def _pass_on(self, shared: SharedSessions, session: McpSession, message: bytes) -> HttpAnswer:
        """What is about nothing here may be about a request on another gateway."""
        try:
            await shared.pass_on(session.id, message)
        except GatewayError as error:
            return refusal(503, error.code, error.message)
        return ACCEPTED

    def _hear_elsewhere(self, ident: str, message: bytes) -> None:
        session = self.sessions.get(ident)
        if session is not None:
            self._take_unanswered(session, read_message(message))

    def cancel(self, visit: Visit) -> None:
        """The client no longer wants the answer, and gets none."""
        visit.cancelled = True
        self._tasks.start(self.calling.cancelled(visit))

    def _returned(self, key: str) -> None:
        self._tasks.start(self.watches.renew(key))

    async def _run(self, visit: HttpVisit, method: str, params: Params) -> HttpAnswer:
        """Answer as JSON, or on the stream that was opened meanwhile. A call goes on when its client has gone."""
        session, code, body, needed = visit.session, 0, b"", None
        self._under_way.add(visit)
        if session is not None:
            session.visits[visit.id] = visit
        try:
            if isinstance(params, CallParams):
                result = await self.calling.answer(visit, params)
            else:
                result = await self.methods.slow(visit, method, params)
                if self._shared is not None and session is not None and method in CHANGING:
                    self._shared.keep_change(session)
            body = response(visit.id, result)
        except RpcError as error:
            code, body = error.code, error_response(visit.id, error)
            needed = error if isinstance(error, ScopeNeeded) else None
        except Exception:  # the boundary: a fault in one request is logged and answered, and stays its own
            log.exception("%s failed", method[:64])
            code, body = FAULT.code, error_response(visit.id, FAULT)
        finally:
            if session is not None and session.visits.get(visit.id) is visit:
                del session.visits[visit.id]
            if visit.stream is not None:
                self._end_stream(visit, visit.stream, body)
            self._under_way.discard(visit)
        if visit.cancelled:
            return NO_ANSWER
        if needed is not None and (issuer := self._issuer()) is not None:
            return more_needed(issuer, visit, needed)
        return Response(
            STATUSES.get(code, 200) if code and visit.revision.errors_have_statuses else 200, body
        )

    def _end_stream(self, visit: HttpVisit, stream: Stream, body: bytes) -> None:
        """The answer is the stream's last event, for which its client can come back; a cancelled request has none."""
        visit.finish(b"" if visit.cancelled else body)
        if visit.session is not None and visit.cancelled:
            visit.session.streams.pop(stream.name.decode(), None)
        elif visit.session is not None:
            self.sessions.keep(visit.session, stream, visit.id, visit.call_id)

    def _get_or_delete(self, request: Request, caller: Caller) -> HttpAnswer | Awaitable[HttpAnswer]:
        version = request.header(VERSION_FIELD)
        revision = BY_HEADER.get(version, NEWEST)
        if (
            not revision.has_sessions
            or request.method not in ("GET", "DELETE")
            or request.header(SESSION_FIELD) is None
        ):
            message = "send requests with POST; GET and DELETE belong to a session"
            return refusal(405, "INVALID_ARGS", message, ((b"allow", b"POST"),))
        try:
            session = self._session(request, caller)
        except UnknownSession as error:
            unknown = Response(404, error_response(b"", error))
            return self._take_up(request, caller, unknown) if self._shared is not None else unknown
        assert session is not None
        if request.method == "DELETE":
            self.sessions.end(session)
            if self._shared is not None:
                self._shared.forget(session)
            return Response(204)
        if not accepts(request.header(b"accept") or EVENTS, EVENTS):
            return refusal(406, "INVALID_ARGS", "This answer is an event stream; accept text/event-stream")
        return self._events(request, session)

    def _events(self, request: Request, session: McpSession) -> HttpAnswer:
        """The session's own stream, or the one that `Last-Event-ID` was lost from."""
        last = request.header(LAST_EVENT_FIELD)
        if last is None:
            return StreamResponse(200, session.standalone.read_chunks(), STREAM_HEADERS)
        resumed = session.resume(last.decode("latin-1"))
        if resumed is None:
            return self._lost(self.sessions.gone(session, last.decode("latin-1")))
        stream, after = resumed
        return StreamResponse(200, stream.read_chunks(after), STREAM_HEADERS)

    def _lost(self, answer: bytes | None) -> HttpAnswer:
        """What a client gets instead of events that are no longer kept: the end of its request, if we know it."""
        if answer is None:
            return Response(400, error_response(b"", RpcError(INVALID_REQUEST, LOST)))
        stream = Stream()
        stream.put(answer)
        stream.end()
        return StreamResponse(200, stream.read_chunks(), STREAM_HEADERS)

    def adopt(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Take over requests whose client is gone: a call is never cut off while it is being recorded."""
        for task in tasks:
            self._tasks.keep(task)

    def refresh(self) -> None:
        """After a reload: what was opened with a token that is gone ends, the others see what they may see now."""
        tokens = self.door.tokens
        for listener in self.notices:
            name, proof = listener.caller.name, listener.proof
            caller = tokens.still(proof, name) if proof else tokens.caller(name)
            if caller is not None:
                listener.caller = caller
            elif isinstance(listener, McpSession):
                self.sessions.end(listener)
            elif isinstance(listener, Listen):
                self._end_listen(listener)

    def _end_listen(self, listen: Listen) -> None:
        """End one on purpose, with the answer that says so."""
        if listen in self._listens:
            self._listens[listen].put(listen.goodbye())
            self._unlisten(listen)

    def changed(self) -> None:
        """Something else than the catalog decides what callers see now, such as new rules: tell who sees a change."""
        self.notices.swapped()

    async def close(self, seconds: float = 5.0) -> None:
        """End every stream on purpose, let requests in flight end, and stop listening."""
        self._closing = True
        for listen in list(self._listens):
            self._end_listen(listen)
        deadline = self._clock.monotonic() + seconds
        while self._under_way and self._clock.monotonic() < deadline:
            await asyncio.sleep(DRAIN_LOOK)
        await self._tasks.wait(max(0.1, deadline - self._clock.monotonic()))
        await self._tasks.cancel()
        for session in list(self.sessions):
            self.sessions.end(session)
        self.notices.close()

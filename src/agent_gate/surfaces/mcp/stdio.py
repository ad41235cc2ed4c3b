"""`StdioServer`: the same surface for one client over stdin and stdout, one message a line."""

import asyncio
import logging
from collections.abc import Callable, Mapping

from agent_gate.core.call import Caller
from agent_gate.core.tasks import KeptTasks
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import INVALID_REQUEST, PARSE_ERROR, RpcError
from agent_gate.mcp.messages import Message, error_response, notification, response
from agent_gate.mcp.names import CANCELLED, INITIALIZE, LISTEN, META_CAPABILITIES, META_VERSION
from agent_gate.mcp.revisions import UNSAID, Revision
from agent_gate.surfaces.mcp.changes.subscriptions import Listen
from agent_gate.surfaces.mcp.http.posting import check_version
from agent_gate.surfaces.mcp.incoming.params import CallParams, Params, read_message, read_object, read_params
from agent_gate.surfaces.mcp.lines import LONGEST_LINE, Lines, LineWriter, read_line
from agent_gate.surfaces.mcp.methods import FAULT
from agent_gate.surfaces.mcp.sessions.sessions import McpSession
from agent_gate.surfaces.mcp.surface import McpSurface
from agent_gate.surfaces.mcp.visit import Visit, named, reused
from agent_gate.surfaces.requestlog import watch_message

log = logging.getLogger("agent_gate.surfaces.mcp")


class StdioVisit(Visit, kw_only=True, eq=False):
    """A request of the one client; everything goes out on the same pipe."""

    send: Callable[[bytes], None]

    def emit(self, message: bytes) -> bool:
        self.send(message)
        return True


class StdioSession(McpSession):
    """A session whose notices need no stream of their own."""

    def __init__(self, server: "StdioServer", session: McpSession) -> None:
        super().__init__(session.caller, session.revision, session.mode, session.capabilities)
        self._send = server.send

    def hear(self, method: str, params: Mapping[str, Json]) -> None:
        self._send(notification(method, params))


class StdioServer:
    """Serves until the client closes its end. Requests run side by side, answers come as they are ready."""

    def __init__(self, surface: McpSurface, caller: Caller) -> None:
        self.surface, self.caller = surface, caller
        self.session: StdioSession | None = None
        self._writer: LineWriter | None = None
        self._visits: dict[bytes, Visit] = {}
        self._listens: dict[bytes, Listen] = {}
        self._tasks = KeptTasks(log, "A request on standard input failed")

    async def run(self, lines: Lines) -> None:
        self._writer = writer = lines.writer
        try:
            while line := await read_line(lines.reader):
                self._take(line)
                await writer.drain()
            if lines.ends and self._tasks.running:  # a file ends where a client that still listens does not
                await asyncio.wait(self._tasks.running)
        except ConnectionError:  # a client that was killed reads no more, while lines of its may still come
            log.info("The client went away")
        finally:
            self._end()

    def send(self, message: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")

    def _take(self, line: bytes) -> None:
        """One line in; what it asks for is answered later, what is wrong with it at once."""
        if not line.strip():
            return
        message = Message()
        try:
            if len(line) > LONGEST_LINE:
                raise RpcError(PARSE_ERROR, f"A message may have at most {LONGEST_LINE} bytes")
            message = read_message(line)
            if message.id and message.method:
                self._request(line, message)
            else:
                self._take_unanswered(message)
        except RpcError as error:
            self.send(error_response(bytes(message.id), error))
        except Exception:  # the boundary: a fault in one message is logged and answered, and stays its own
            log.exception("a message failed")
            self.send(error_response(bytes(message.id), FAULT))

    def _request(self, line: bytes, message: Message) -> None:
        number, method = bytes(message.id), message.method
        if method == INITIALIZE:
            ended = watch_message("stdio", method)
            self._initialize(message)
            ended()
            return
        params, meta = read_params(line, message)
        said = meta.get(META_VERSION)
        if number in self._visits or number in self._listens:
            raise reused(number)
        visit = self._visit(number, meta, None if said is None else check_version(str(said).encode(), meta))
        ended = watch_message("stdio", method, params)
        if isinstance(params, dict) and (result := self.surface.methods.quick(visit, method, params)):
            self.send(response(number, result))
            ended()
        elif method == LISTEN and visit.revision.listens_by_request and isinstance(params, dict):
            self._listen(visit, params.get("notifications"))
        else:
            self._visits[number] = visit
            self._tasks.start(self._answer(visit, method, params, ended))

    def _visit(self, number: bytes, meta: Mapping[str, Json], alone: Revision | None) -> StdioVisit:
        """`alone` is the revision of a request that says everything for itself."""
        session, named = self.session, self.session.id if self.session is not None else None
        if alone is not None:
            revision, capabilities, session = alone, meta[META_CAPABILITIES], None
        elif session is not None:
            revision, capabilities = session.revision, session.capabilities
        else:
            revision, capabilities = UNSAID, {}
        return StdioVisit(
            self._agent(),
            revision,
            self.caller.mode,
            session,
            number,
            meta,
            capabilities,
            revision.asks_by_result,
            named,
            send=self.send,
        )

    def _agent(self) -> Caller:
        """The agent as it is configured now; a reload may have changed what it sees, or removed it."""
        caller = self.surface.door.tokens.caller(self.caller.name)
        if caller is None:
            raise RpcError(INVALID_REQUEST, f"There is no agent named {self.caller.name} any more")
        return caller

    def _initialize(self, message: Message) -> None:
        if self.session is not None:
            raise RpcError(INVALID_REQUEST, "The session is initialized already")
        session, welcome = self.surface.methods.initialize(self._agent(), self.caller.mode, message.params)
        self.session = StdioSession(self, session)
        self.surface.notices.join(self.session)
        self.send(response(bytes(message.id), welcome))

    def _listen(self, visit: Visit, wanted: Json) -> None:
        self._listens[visit.id] = self.surface.listen(visit, wanted, self.send)

    async def _answer(self, visit: Visit, method: str, params: Params, ended: Callable[[], None]) -> None:
        try:
            if isinstance(params, CallParams):
                result = await self.surface.calling.answer(visit, params)
            else:
                result = await self.surface.methods.slow(visit, method, params)
            answer = response(visit.id, result)
        except RpcError as error:
            answer = error_response(visit.id, error)
        except Exception:  # the boundary: a fault in one request is logged and answered, and stays its own
            log.exception("%s failed", method[:64])
            answer = error_response(visit.id, FAULT)
        finally:
            ended()
            del self._visits[visit.id]
        if not visit.cancelled:
            self.send(answer)

    def _take_unanswered(self, message: Message) -> None:
        if not message.method:
            if self.session is not None:
                self.session.answered(message)
        elif message.method == CANCELLED:
            wanted = read_object(message.params).get("requestId")
            listen, visit = named(self._listens, wanted), named(self._visits, wanted)
            if listen is not None:
                del self._listens[listen.number]
                self.surface.leave(listen)
            elif visit is not None:
                self.surface.cancel(visit)

    def _end(self) -> None:
        """The client is gone: what runs is cancelled, what waits for a person goes on without it."""
        for listener in (*self._listens.values(), self.session):
            if listener is not None:
                self.surface.leave(listener)
        for visit in list(self._visits.values()):
            self.surface.left(visit)
        self.surface.adopt(list(self._tasks.running))
        self._writer = None

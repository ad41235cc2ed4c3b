"""What a POST carries: one message, checked as its revision wants it, answered as JSON or as an event stream."""

from collections.abc import Mapping

from agent_gate.core.call import Caller
from agent_gate.core.catalog import Shelf
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import INVALID_PARAMS, UNSUPPORTED_VERSION, RpcError
from agent_gate.mcp.headers import EVENT_STREAM, JSON
from agent_gate.mcp.names import META_CAPABILITIES, META_VERSION, NAMED_BY
from agent_gate.mcp.revisions import WITHOUT_SESSIONS, Revision
from agent_gate.net.http import Header, Request, Response, StreamResponse, refusal
from agent_gate.surfaces.mcp.incoming.headers import ParamHeaders, check_routing, mismatch
from agent_gate.surfaces.mcp.incoming.params import CallParams, Params
from agent_gate.surfaces.mcp.sessions.sessions import McpSession
from agent_gate.surfaces.mcp.sessions.streams import Stream
from agent_gate.surfaces.mcp.visit import Visit, reused

EVENTS, PLAIN_JSON = EVENT_STREAM.encode(), JSON.encode()
REVISIONS = {one.header: one for one in WITHOUT_SESSIONS.values()}
NOTHING_DECLARED: Mapping[str, Json] = {}
STREAM_HEADERS: tuple[Header, ...] = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


def check_media(request: Request) -> Response | None:
    """The refusal of a request whose body is no JSON, or whose client takes no JSON back."""
    fields = request.fields
    kind, accept = fields.get(b"content-type"), fields.get(b"accept")
    if kind is not None and kind != PLAIN_JSON and media_type(kind) != PLAIN_JSON:
        return refusal(415, "INVALID_ARGS", f"The body must be {JSON}; say so in Content-Type")
    if accept is not None and accept.find(PLAIN_JSON) < 0 and not accepts(accept, PLAIN_JSON):
        return refusal(406, "INVALID_ARGS", f"Answers are {JSON} or {EVENT_STREAM}; accept both")
    return None


def media_type(value: bytes) -> bytes:
    return value.partition(b";")[0].strip().lower()


def accepts(header: bytes, wanted: bytes) -> bool:
    """Whether an `Accept` header has room for a media type."""
    group = wanted.partition(b"/")[0] + b"/*"
    return any(media_type(one) in (wanted, group, b"*/*") for one in header.split(b","))


class HttpVisit(Visit, kw_only=True, eq=False):
    """A request over HTTP. The first message before its answer opens the event stream; one after it goes nowhere."""

    request_in: Request
    stream: Stream | None = None

    def emit(self, message: bytes) -> bool:
        if self.stream is None:
            accept = self.request_in.header(b"accept")
            if accept is not None and EVENTS not in accept and not accepts(accept, EVENTS):
                return False
            if self.request_in.opener is None:
                return False
            self.stream = self.session.open_stream() if self.session is not None else Stream()
            self.request_in.begin(StreamResponse(200, self.stream.read_chunks(), STREAM_HEADERS))
        elif self.stream.ended:
            return False
        self.stream.put(message)
        return True

    def finish(self, answer: bytes) -> None:
        """The last message of the stream, if there is one."""
        if self.stream is not None:
            if answer:
                self.stream.put(answer)
            self.stream.end()


def visit_alone(
    request: Request, caller: Caller, revision: Revision, mode: str, number: bytes, meta: Mapping[str, Json]
) -> HttpVisit:
    """A request of a revision without sessions: it says everything for itself."""
    fields, capabilities = request.fields, meta[META_CAPABILITIES]
    session, trace = fields.get(b"agent-session"), fields.get(b"traceparent")
    return HttpVisit(
        caller,
        revision,
        mode,
        None,
        number,
        meta,
        capabilities,
        revision.asks_by_result,
        short(session) if session else None,
        short(trace) if trace else None,
        request_in=request,
    )


def visit_in_session(
    request: Request,
    caller: Caller,
    revision: Revision,
    mode: str,
    session: McpSession | None,
    number: bytes,
    meta: Mapping[str, Json],
) -> HttpVisit:
    """A request of a revision with sessions; not every client keeps the one that it was given."""
    fields, capabilities = request.fields, NOTHING_DECLARED
    named: str | None = None
    if session is not None:
        named, capabilities = session.id, session.capabilities
    elif said := fields.get(b"agent-session"):
        named = short(said)
    trace = fields.get(b"traceparent")
    return HttpVisit(
        caller,
        revision,
        mode,
        session,
        number,
        meta,
        capabilities,
        revision.asks_by_result,
        named,
        short(trace) if trace else None,
        sender=request,
        request_in=request,
    )


def refuse_reuse(session: McpSession, number: bytes) -> None:
    """An id names one open request; a client whose connection broke may ask again under the same."""
    open_already = session.visits.get(number)
    if open_already is not None and (open_already.sender is None or open_already.sender.connected):
        raise reused(number)


def short(header: bytes) -> str:
    return header.decode("ascii", "replace")[:128]


class Repeated:
    """Checks what a revision without sessions demands of every request: its `_meta`, and headers that repeat the body."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._param_headers = ParamHeaders()

    def check(
        self,
        request: Request,
        caller: Caller,
        version: bytes,
        method: str,
        params: Params,
        meta: Mapping[str, Json],
    ) -> Revision:
        revision = check_version(version, meta)
        if isinstance(params, CallParams):
            check_routing(request, method, params.name)
            tool = self._shelf.catalog.names.get(params.name)
            if tool is not None and caller.sees(tool.namespace):
                self._param_headers.check(request, tool, params.arguments)
        else:
            key = NAMED_BY.get(method)
            check_routing(request, method, params.get(key) if key is not None else None)
        return revision


def check_version(version: bytes, meta: Mapping[str, Json]) -> Revision:
    """The revision, which with the client's capabilities each request must say."""
    said, revision = meta.get(META_VERSION), REVISIONS.get(version)
    if revision is None and (said is None or said == version.decode("ascii", "replace")):
        requested = version[:64].decode("ascii", "replace")
        data = {"supported": list(WITHOUT_SESSIONS), "requested": requested}
        raise RpcError(UNSUPPORTED_VERSION, f"Unsupported protocol version: {requested}", data)
    if META_VERSION not in meta or META_CAPABILITIES not in meta:
        missing = [key for key in (META_VERSION, META_CAPABILITIES) if key not in meta]
        raise RpcError(INVALID_PARAMS, f"Invalid params: _meta lacks {' and '.join(missing)}")
    if revision is None or said != revision.name:
        raise mismatch("MCP-Protocol-Version", f"does not repeat {META_VERSION} of the body")
    if not isinstance(meta[META_CAPABILITIES], dict):
        raise RpcError(INVALID_PARAMS, f"Invalid params: {META_CAPABILITIES} must be an object")
    return revision

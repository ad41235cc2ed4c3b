"""What a POST carries: one message, checked as its revision wants it, answered as JSON or as an event stream."""

from collections.abc import Mapping

from agent_gate.core.call import Caller
from agent_gate.core.catalog import Shelf
from agent_gate.core.tool import Json
from agent_gate.net.http import Header, Request, StreamResponse
from agent_gate.surfaces.mcp.headers import NAMED_BY, ParamHeaders, check_routing, mismatch
from agent_gate.surfaces.mcp.sessions import Session
from agent_gate.surfaces.mcp.streams import Stream
from agent_gate.surfaces.mcp.visit import Visit
from agent_gate.surfaces.mcp.wire import (
    INVALID_PARAMS,
    META_CAPABILITIES,
    META_VERSION,
    MODERN,
    UNSUPPORTED_VERSION,
    CallParams,
    Params,
    RpcError,
)

EVENT_STREAM = b"text/event-stream"
MODERN_HEADER = MODERN.encode()
NOTHING_DECLARED: Mapping[str, Json] = {}
STREAM_HEADERS: tuple[Header, ...] = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


class HttpVisit(Visit, kw_only=True, eq=False):
    """A request over HTTP. The first message before its answer opens the event stream; one after it goes nowhere."""

    request_in: Request
    stream: Stream | None = None

    def emit(self, message: bytes) -> bool:
        if self.stream is None:
            accept = self.request_in.header(b"accept")
            if accept is not None and EVENT_STREAM not in accept and b"*/*" not in accept:
                return False
            if self.request_in.opener is None:
                return False
            self.stream = self.session.open_stream() if self.session is not None else Stream()
            self.request_in.begin(StreamResponse(200, self.stream.chunks(), STREAM_HEADERS))
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


def modern_visit(
    request: Request, caller: Caller, mode: str, number: bytes, meta: Mapping[str, Json]
) -> HttpVisit:
    """A request of the revision in which each says everything for itself."""
    fields, capabilities = request.fields, meta[META_CAPABILITIES]
    session, trace = short(fields.get(b"agent-session")), short(fields.get(b"traceparent"))
    return HttpVisit(
        caller, MODERN, True, mode, None, number, meta, capabilities, session, trace, request_in=request
    )


def handshake_visit(
    request: Request,
    caller: Caller,
    era: str,
    mode: str,
    session: Session | None,
    number: bytes,
    meta: Mapping[str, Json],
) -> HttpVisit:
    """A request of a revision with a handshake; not every client keeps the session that it was given."""
    fields, capabilities = request.fields, NOTHING_DECLARED
    named: str | None
    if session is not None:
        named, capabilities = session.id, session.capabilities
    else:
        named = short(fields.get(b"agent-session"))
    trace = short(fields.get(b"traceparent"))
    visit = HttpVisit(
        caller, era, False, mode, session, number, meta, capabilities, named, trace, request_in=request
    )
    visit.sender = request
    return visit


def short(header: bytes | None) -> str | None:
    return header.decode("ascii", "replace")[:128] if header else None


class ModernChecks:
    """What 2026-07-28 demands of every request: its `_meta`, and headers that repeat the body."""

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
    ) -> None:
        check_version(version, meta)
        if isinstance(params, CallParams):
            check_routing(request, method, params.name)
            tool = self._shelf.catalog.names.get(params.name)
            if tool is not None and caller.sees(tool.namespace):
                self._param_headers.check(request, tool, params.arguments)
        else:
            key = NAMED_BY.get(method)
            check_routing(request, method, params.get(key) if key is not None else None)


def check_version(version: bytes, meta: Mapping[str, Json]) -> None:
    """The revision and the client's capabilities, as each request must say them."""
    said = meta.get(META_VERSION)
    if version != MODERN_HEADER and (said is None or said == version.decode("ascii", "replace")):
        requested = version[:64].decode("ascii", "replace")
        data = {"supported": [MODERN], "requested": requested}
        raise RpcError(UNSUPPORTED_VERSION, f"Unsupported protocol version: {requested}", data)
    missing = [key for key in (META_VERSION, META_CAPABILITIES) if key not in meta]
    if missing:
        raise RpcError(INVALID_PARAMS, f"Invalid params: _meta lacks {' and '.join(missing)}")
    if said != MODERN or version != MODERN_HEADER:
        raise mismatch("MCP-Protocol-Version", f"does not repeat {META_VERSION} of the body")
    if not isinstance(meta[META_CAPABILITIES], dict):
        raise RpcError(INVALID_PARAMS, f"Invalid params: {META_CAPABILITIES} must be an object")

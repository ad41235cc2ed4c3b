"""The REST surface: decode, `run(call)`, encode."""

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from agent_gate.access.door import Door
from agent_gate.access.view import MadeFor, View
from agent_gate.calls import Calls
from agent_gate.calls.meta import MetaTools
from agent_gate.core.call import GIVEN_CONTEXT, Call, Caller, Pending
from agent_gate.core.ids import fold_namespace
from agent_gate.core.strict import parse
from agent_gate.discovery.meta import ARGUMENTS
from agent_gate.errors import GatewayError, InvalidArgs, Unauthorized
from agent_gate.net.http import Request, Response, error_response, json_response, refusal
from agent_gate.net.media import refuse_accept, refuse_media
from agent_gate.observe import failpoint
from agent_gate.surfaces.rest.encode import outcome_response, tool_details, tool_summary
from agent_gate.surfaces.rest.openapi import LONGEST_WAIT, document

TOOLS = "/api/tools"
TOOL = "/api/tools/"
NOTHING_SAID: Mapping[str, Any] = {}
CALLS = "/api/calls/"
DEFAULT_WAIT = 50.0
LONGEST_KEY = 256
PREFER = re.compile(rb"(?:^|[,;\s])wait=(\d+(?:\.\d+)?)")
CALL_ID = re.compile(r"[0-9a-f]{32}")


def wait_of(request: Request) -> float:
    """How long the caller lets us hold the request: `Prefer: wait=N`."""
    prefer = request.header(b"prefer")
    found = PREFER.search(prefer) if prefer is not None else None
    return min(LONGEST_WAIT, float(found[1])) if found else DEFAULT_WAIT


def key_of(request: Request) -> str | None:
    """The caller's idempotency key; one that is too long is refused, because a cut one could be another's."""
    key = request.header(b"idempotency-key")
    if key is not None and len(key) > LONGEST_KEY:
        raise InvalidArgs(f"Idempotency-Key must have at most {LONGEST_KEY} characters")
    return key.decode("latin-1") if key else None


def seconds_of(text: str) -> float:
    """A number of seconds within the documented bounds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= LONGEST_WAIT:
        raise InvalidArgs(f"wait must be a number of seconds from 0 to {LONGEST_WAIT:.0f}")
    return seconds


def arguments_of(body: bytes) -> Mapping[str, Any]:
    value = parse(body) if body.strip() else {}
    if not isinstance(value, dict):
        raise InvalidArgs("The body must be a JSON object with the tool's arguments")
    return value


def asked(body: bytes) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
    """`{tool, arguments}`, or `{server, tool, args}` as simple scripts write it, the server by its configured key."""
    value = arguments_of(body)
    tool, server = value.get("tool"), value.get("server")
    arguments = value.get("arguments", value.get("args", {}))
    if not isinstance(tool, str) or not isinstance(arguments, dict) or not isinstance(server, str | None):
        raise InvalidArgs('The body must be {"tool": NAME, "arguments": {…}}')
    context = value.get("context")
    meta = {GIVEN_CONTEXT: context} if isinstance(context, dict) else {}
    return (f"{fold_namespace(server)}:{tool}" if server else tool), arguments, meta


def offered(path: str) -> bytes:
    """The methods of a path that exists; nothing for one that does not."""
    if path.startswith(CALLS):
        return b"DELETE, GET"
    if path.startswith(TOOL):
        return b"GET, POST"
    return {TOOLS: b"GET", "/openapi.json": b"GET", "/api/call": b"POST"}.get(path, b"")


class RestSurface:
    """Serves `/api/*` and `/openapi.json` to callers with an agent token."""

    name = "rest"

    def __init__(self, calls: Calls, door: Door, view: View, meta: MetaTools) -> None:
        self._calls, self._door, self._view, self._meta = calls, door, view, meta
        self._documents = MadeFor[bytes]()

    def keep(self, names: Collection[str]) -> None:
        """Forget the documents of callers of other names."""
        self._documents.keep(names)

    async def handle(self, request: Request) -> Response:
        try:
            caller = self._door.enter(request)
            refused = refuse_media(request) or refuse_accept(request)
            return refused or await self._route(request, caller)
        except Unauthorized as error:
            return self._door.refusal(error)
        except GatewayError as error:
            return error_response(error)

    async def _route(self, request: Request, caller: Caller) -> Response:
        path, method = request.path, request.method
        if path.startswith(TOOL) and method == "POST":
            return await self._call(request, caller, unquote(path[len(TOOL) :]), arguments_of(request.body))
        if path == "/api/call" and method == "POST":
            return await self._call(request, caller, *asked(request.body))
        if method == "GET" and (path == TOOLS or path.startswith(TOOL)):
            return self._describe(caller, unquote(path[len(TOOL) :]))
        if path.startswith(CALLS) and method in ("GET", "DELETE"):
            return await self._follow(request, caller, path[len(CALLS) :])
        if path == "/openapi.json" and method == "GET":
            return Response(200, self._openapi(caller))
        return self._nothing_here(path, method)

    def _nothing_here(self, path: str, method: str) -> Response:
        allowed = offered(path)
        if allowed:
            return refusal(405, "INVALID_ARGS", f"{method} is not offered here", ((b"allow", allowed),))
        return refusal(404, "INVALID_ARGS", "There is nothing here. See /openapi.json")

    async def _call(
        self,
        request: Request,
        caller: Caller,
        tool: str,
        arguments: Mapping[str, Any],
        meta: Mapping[str, Any] = NOTHING_SAID,
    ) -> Response:
        session, trace = request.header(b"agent-session"), request.header(b"traceparent")
        call = Call(
            tool=tool,
            arguments=arguments,
            caller=caller,
            surface=self.name,
            session=session.decode("latin-1")[:128] if session else None,
            idempotency_key=key_of(request),
            trace=trace.decode("latin-1")[:100] if trace else None,
            meta=meta,
            sender=request,
        )
        if tool in ARGUMENTS:
            return await self._call_meta_tool(request, call)
        outcome = await self._calls.run(call, wait=wait_of(request))
        if failpoint.armed:
            failpoint.reach("mid_deliver")
        return outcome_response(outcome)

    async def _call_meta_tool(self, request: Request, call: Call) -> Response:
        """`tool_browse` and friends under the same path as every other tool."""
        answer = await self._meta.answer(call.tool, call.arguments, call, wait=wait_of(request))
        if isinstance(answer, Pending):
            return outcome_response(answer)
        return Response(200, b'{"call":"%b","status":"executed","data":%b}' % (call.id.encode(), answer))

    def _describe(self, caller: Caller, name: str) -> Response:
        if not name:
            return json_response(200, {"tools": [tool_summary(tool) for tool in self._view.tools(caller)]})
        tool = self._view.find(caller, name)
        if tool is None:
            raise self._view.unknown(caller, name)
        return json_response(200, tool_details(tool))

    async def _follow(self, request: Request, caller: Caller, call_id: str) -> Response:
        """Read or withdraw a call that this caller made; a foreign id is like one that never was."""
        if not CALL_ID.fullmatch(call_id):
            return refusal(404, "VIEW_FAILED", "There is no such call")
        if request.method == "DELETE":
            withdrawn = await self._calls.withdraw(call_id, caller)
            return (
                Response(204)
                if withdrawn
                else refusal(404, "VIEW_FAILED", "There is no such call waiting for a person")
            )
        seconds = seconds_of(request.params().get("wait", "0"))
        return outcome_response(await self._calls.await_outcome(call_id, caller, wait=seconds))

    def _openapi(self, caller: Caller) -> bytes:
        tools = self._view.tools(caller)
        made = self._documents.get(caller.name, tools)
        return made or self._documents.put(caller.name, tools, msgspec.json.encode(document(tools)))

"""`resources/read` and `prompts/get`: reads of a source, which pass the same pipeline as calls of tools."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_gate.calls.admit import refused_by
from agent_gate.core.call import Caller, Decision, Pending
from agent_gate.core.catalog import Shelf, read_name
from agent_gate.core.ports import ContextSource
from agent_gate.core.tool import Json, Tool
from agent_gate.errors import (
    DependencyUnavailable,
    GatewayError,
    Internal,
    InvalidArgs,
    ToolNotFound,
    UpstreamError,
)
from agent_gate.mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from agent_gate.mcp.results import question_in
from agent_gate.mcp.revisions import Revision
from agent_gate.surfaces.mcp.incoming.params import CallParams
from agent_gate.surfaces.mcp.tools import render
from agent_gate.surfaces.mcp.tools.calling import Calling
from agent_gate.surfaces.mcp.visit import Visit

AROUND = ("_meta", "inputResponses", "requestState")
RETRY_AFTER = 10.0
WAITS = "A person is being asked whether this may be read. To get it then, call"

Denies = Callable[[Tool, Mapping[str, Json], Caller], Decision | None]
"""The decision of a rule that denies a caller to call this with these arguments; None where none does."""


def nothing_denied(_read: Tool, _arguments: Mapping[str, Json], _caller: Caller) -> None:
    return None


class Reads:
    """Turns a read into a call of its source, and the outcome into the result its method promises."""

    def __init__(self, calling: Calling, shelf: Shelf, denies: Denies) -> None:
        self._calling, self._shelf, self._denies = calling, shelf, denies

    def hidden(
        self, caller: Caller, source: ContextSource, method: str, about: Mapping[str, Json]
    ) -> Decision | None:
        """The decision by which what cannot be read leaves the caller's lists; None where it stays."""
        read = self._shelf.catalog.reads.get(read_name(source.key, method))
        return self._denies(read, about, caller) if read is not None else None

    async def read(
        self, visit: Visit, source: ContextSource, method: str, params: Mapping[str, Json]
    ) -> bytes:
        wanted = self._wanted(source.key, method, params)
        reply = await self._calling.read(visit, wanted)
        if isinstance(reply, Pending):
            if self._calling.comes_back(visit):
                return self._calling.waiting(visit, wanted, reply)
            raise protocol_error(still_asked(reply, self._calling.later(visit, reply)), visit.revision)
        if reply.result is None:
            raise protocol_error(reply.error or Internal("The read ended without an answer"), visit.revision)
        body = reply.result.body
        asking = question_in(body)
        if asking is not None and asking.request_state is not None:
            sealed = self._calling.seal(visit, wanted, "source", asking.request_state)
            body = render.with_state(body, sealed)
        fresh = method == "resources/read" and asking is None
        return render.cleaned(body, visit.revision, ttl=fresh)

    def record_unknown(self, visit: Visit, method: str, params: Mapping[str, Json], what: str) -> None:
        """Put on record that something was asked for which no source of the caller has."""
        wanted = self._wanted("", method, params)
        self._calling.refuse(visit, wanted, ToolNotFound(what))

    def _wanted(self, key: str, method: str, params: Mapping[str, Json]) -> CallParams:
        """The read as a call: all that is asked are its arguments, so that nothing rides along unseen."""
        meta = params.get("_meta")
        more: dict[str, Any] = {
            "input_responses": params.get("inputResponses", msgspec.UNSET),
            "request_state": params.get("requestState", msgspec.UNSET),
        }
        arguments = {name: value for name, value in params.items() if name not in AROUND}
        return CallParams(
            read_name(key, method) if key else method,
            arguments,
            meta if isinstance(meta, dict) else {},
            **more,
        )


def still_asked(pending: Pending, later: str) -> DependencyUnavailable:
    return DependencyUnavailable(
        f"{WAITS} {later}", retry_after=RETRY_AFTER, details={"call": pending.call_id}
    )


def denied(decision: Decision, revision: Revision) -> RpcError:
    return protocol_error(refused_by(decision), revision)


def protocol_error(error: GatewayError, revision: Revision) -> RpcError:
    """Reads have no error results; whatever went wrong is an error of the protocol, with ours inside."""
    if isinstance(error, UpstreamError):
        return render.upstream_error(error, revision)
    code = INVALID_PARAMS if isinstance(error, InvalidArgs) else INTERNAL_ERROR
    return RpcError(code, error.message, error.as_dict())

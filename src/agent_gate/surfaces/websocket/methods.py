"""The methods an authenticated agent may call: each takes the agent and its message, and returns its result as JSON.

`tool_request` and the meta-tools are not here: they are calls, so the surface runs them itself.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import msgspec

from agent_gate.calls import Calls
from agent_gate.calls.meta import MetaTools, Visible
from agent_gate.core.call import GIVEN_CONTEXT, Call, Caller
from agent_gate.core.tool import Json, Tool
from agent_gate.discovery.meta import ARGUMENTS
from agent_gate.errors import InvalidArgs
from agent_gate.surfaces.websocket.agent import Agent, ProgressTalk
from agent_gate.surfaces.websocket.describe import Descriptions, pending_row
from agent_gate.surfaces.websocket.messages import SocketMessage

SURFACE = "websocket"
LONGEST_KEY = 256
MOST_NAMES = 1000

Extra = Callable[[Call], Awaitable[bytes]]
encode = msgspec.json.encode


def optional_text(params: Mapping[str, Json], name: str) -> str | None:
    value = params.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_KEY or "\0" in value:
        raise InvalidArgs(f"{name} must be a string of 1 to {LONGEST_KEY} characters, none of them NUL")
    return value


def timeout_of(params: Mapping[str, Json]) -> float | None:
    value = params.get("timeout")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InvalidArgs("timeout must be a positive number of seconds")
    return float(value)


def call_of(agent: Agent, caller: Caller, message: SocketMessage) -> Call:
    """The call that a `tool_request` asks for."""
    params = message.params
    tool, args = params.get("tool"), params.get("args")
    if not isinstance(tool, str) or not tool:
        raise InvalidArgs("Missing tool name: params.tool must be a string")
    if args is not None and not isinstance(args, dict):
        raise InvalidArgs("Invalid arguments: params.args must be an object")
    reports = params.get("progress") is True
    return Call(
        tool=tool,
        arguments=args or {},
        caller=caller,
        surface=SURFACE,
        session=agent.session,
        client_id=message.id,
        idempotency_key=optional_text(params, "idempotency_key"),
        timeout=timeout_of(params),
        trace=optional_text(params, "traceparent"),
        meta=meta_of(message, reports),
        conversation=ProgressTalk(agent, message.id) if reports else None,
    )


def meta_of(message: SocketMessage, reports: bool) -> dict[str, Json]:
    """What goes along with a call; servers report progress only where they were given a token."""
    context = message.params.get("context")
    meta: dict[str, Json] = {GIVEN_CONTEXT: context} if isinstance(context, dict) else {}
    if reports:
        meta["progressToken"] = message.id
    return meta


def meta_call(agent: Agent, caller: Caller, message: SocketMessage) -> Call:
    """A meta-tool as a call; what `tool_execute` runs takes its place."""
    return Call(
        tool=message.method,
        arguments=message.params,
        caller=caller,
        surface=SURFACE,
        session=agent.session,
        client_id=message.id,
    )


def meta_tools(meta: MetaTools) -> dict[str, Extra]:
    """The meta-tools by method name, `browse` being the short one; one that asks a person waits as long as it takes."""
    methods = {name: name for name in ARGUMENTS} | {"browse": "tool_browse"}
    return {method: partial(answer_meta, meta, name) for method, name in methods.items()}


async def answer_meta(meta: MetaTools, name: str, call: Call) -> bytes:
    answer = await meta.answer(name, call.arguments, call, wait=None)
    assert isinstance(answer, bytes)
    return answer


def names_of(params: Mapping[str, Json], name: str) -> list[str]:
    value = params.get(name)
    if (
        not isinstance(value, list)
        or len(value) > MOST_NAMES
        or not all(isinstance(item, str) for item in value)
    ):
        raise InvalidArgs(f"{name} must be a list of at most {MOST_NAMES} strings")
    return value


class Methods:
    """Looks things up for an agent; only what is its own."""

    def __init__(self, calls: Calls, visible: Visible) -> None:
        self._calls, self._visible = calls, visible
        self._descriptions = Descriptions()

    def find(self, name: str) -> Callable[[Agent, Caller, SocketMessage], Awaitable[bytes]] | None:
        return {
            "list_tools": self.list_tools,
            "get_pending_results": self.get_pending_results,
            "ack_results": self.ack_results,
            "cancel": self.cancel,
        }.get(name)

    async def list_tools(self, _agent: Agent, caller: Caller, message: SocketMessage) -> bytes:
        """The tools this caller's listings show; `tools` limits them to those names."""
        shown: Sequence[Tool] = self._visible(caller)
        if message.params.get("tools") is not None:
            wanted = set(names_of(message.params, "tools"))
            find = self._calls.shelf.catalog.find
            named = {tool.id for name in wanted if (tool := find(name)) is not None}
            shown = [tool for tool in shown if tool.id in named]
        return b'{"tools":[%b]}' % b",".join(map(self._descriptions.of, shown))

    async def get_pending_results(self, agent: Agent, caller: Caller, _message: SocketMessage) -> bytes:
        """Results that were kept for this caller; they stay until acknowledged, or known to have arrived."""
        if agent.sent:
            await self._calls.acknowledge(caller, agent.take_sent())
        before = await agent.before if agent.before is not None else ""
        page = await self._calls.read_kept(caller)
        if not agent.acknowledges:
            agent.note_sent(kept.call_id for kept in page.results)
        rows = [pending_row(kept, before) for kept in page.results]
        return encode({"results": rows} | ({"more": True} if page.more else {}))

    async def ack_results(self, agent: Agent, caller: Caller, message: SocketMessage) -> bytes:
        """These results arrived; an agent that says so once is taken to say so always."""
        agent.acknowledges, agent.sent = True, None
        call_ids = names_of(message.params, "request_ids")
        return encode({"acknowledged": await self._calls.acknowledge(caller, call_ids)})

    async def cancel(self, agent: Agent, caller: Caller, message: SocketMessage) -> bytes:
        """Take back a request of this connection by its id, or any call of this caller by the call's id."""
        ident = message.params.get("id")
        if isinstance(ident, bool) or not isinstance(ident, str | int | float):
            raise InvalidArgs("id must be the id of a request on this connection, or a call's id")
        call_id = (agent.live or {}).get(ident, ident)
        cancelled = isinstance(call_id, str) and await self._calls.cancel(call_id, caller)
        return encode({"cancelled": cancelled})

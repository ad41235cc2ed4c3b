"""`proxy` and `gateway` mode over MCP: the meta-tools in place of the catalog."""

from collections.abc import Awaitable
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_gate.calls import Calls
from agent_gate.calls.meta import MetaTools
from agent_gate.core.call import Call, Caller, Outcome, Pending, Result
from agent_gate.core.call import Mode as ModeName
from agent_gate.discovery.browse import Browsed
from agent_gate.discovery.meta import (
    ARGUMENTS,
    BrowseArgs,
    ExecuteArgs,
    HydrateArgs,
    ViewArgs,
    error_body,
    meta_tools,
    parse,
)
from agent_gate.errors import GatewayError, InvalidArgs, ToolNotFound, ViewFailed
from agent_gate.mcp.messages import decode, encode
from agent_gate.results.views import ResultView
from agent_gate.surfaces.mcp.modes import HoldRequest, ModeReply
from agent_gate.surfaces.mcp.tools.lists import GATE_RESULT
from agent_gate.surfaces.mcp.tools.step_up import check_scope

CARD_MEMBERS = (("id", "description"), ("id",))


def text_result(text: str, structured: Any = None, *, is_error: bool = False) -> bytes:
    body: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if structured is not None:
        body["structuredContent"] = structured
    return encode(body | ({"isError": True} if is_error else {}))


def error_result(error: GatewayError, path: str = "") -> bytes:
    """An error as the meta-tools promise it: one JSON object, also for malformed arguments."""
    body = error_body(error, path)
    return text_result(encode(body).decode(), body, is_error=True)


def envelope_result(result: Result) -> bytes:
    """An envelope for the model: its text is written to be read, its JSON stands beside it."""
    envelope = decode(result.body)
    stored = [
        f"Stored whole as {a['handle']} ({a['size']} bytes); look into it with tool_view"
        for a in envelope["artifacts"]
    ]
    text = "\n".join([envelope["summary"], *envelope["facts"], *stored])
    return text_result(text, envelope, is_error=result.is_error)


def view_result(seen: ResultView) -> bytes:
    """A part that is no text is shown as the content it is, and not a second time as JSON."""
    if seen.part is not None:
        return encode({"content": [seen.part], "structuredContent": {"text": seen.text}})
    return text_result("\n".join(filter(None, [seen.text, seen.left])), msgspec.to_builtins(seen))


def cards_of(page: Browsed) -> dict[str, Any] | None:
    """The cards beside their text, with as much of each as makes them no larger than it: a model may be given both."""
    most = len(page.text.encode())
    for members in CARD_MEMBERS:
        body = {"cards": [{name: getattr(card, name) for name in members} for card in page.cards]}
        if len(encode(body)) <= most:
            return body
    return None


class MetaMode:
    """One of the two modes. A catalog name that is called directly is pointed to `tool_execute`."""

    def __init__(self, mode: ModeName, meta: MetaTools, calls: Calls, hold: float) -> None:
        self._mode, self._meta, self._calls, self._hold = mode, meta, calls, hold
        self._own = frozenset(tool["name"] for tool in meta_tools(mode))

    def list(self, caller: Caller) -> bytes | None:
        return encode(self._meta.listing(self._mode, caller))

    def call(self, call: Call, resumes: str | None, held: HoldRequest) -> Awaitable[ModeReply] | None:
        return None if call.tool == GATE_RESULT else self._answer(call, resumes, held)

    async def _answer(self, call: Call, resumes: str | None, held: HoldRequest) -> ModeReply:
        name, arguments = call.tool, call.arguments
        path = str(arguments.get("path") or arguments.get("tool_id") or arguments.get("handle") or "")[:240]
        try:
            if name not in self._own:
                raise InvalidArgs(self._not_here(name))
            args = parse(name, arguments)
            if isinstance(args, ExecuteArgs):
                return self._outcome(await self._execute(args, call, resumes, held), call.caller, path)
            return await self._look(args, call)
        except GatewayError as error:
            return self._refused(self._meta.record_refusal(call, error), call.caller, path)

    def _not_here(self, name: str) -> str:
        if name in ARGUMENTS:
            return f"There is no {name} in {self._mode} mode. Use {', '.join(sorted(self._own))}"
        return f"{name[:120]} is not called directly here. Use tool_execute with its tool_id"

    async def _look(self, args: BrowseArgs | HydrateArgs | ViewArgs, call: Call) -> ModeReply:
        caller, session = call.caller, call.session
        if isinstance(args, BrowseArgs):
            page = self._meta.browse(caller, args, session)
            return text_result(page.text, cards_of(page))
        if isinstance(args, HydrateArgs):
            found = self._meta.hydrate(caller, args, session)
            return text_result(encode(found).decode(), found)
        return view_result(await self._meta.view(caller, args, wait=self._hold))

    async def _execute(
        self, args: ExecuteArgs, call: Call, resumes: str | None, held: HoldRequest
    ) -> Outcome | Pending:
        if resumes is not None:
            return await held(lambda seconds: self._calls.await_outcome(resumes, call.caller, wait=seconds))
        return await self._meta.execute(replace(call, mode=self._mode), args, held)

    def _refused(self, error: GatewayError, caller: Caller, path: str) -> bytes:
        """The error; or `ScopeNeeded` where another sign-in could give the tool that was named."""
        if isinstance(error, ToolNotFound):
            check_scope(caller, path, self._meta.catalog)
        return error_result(error, path)

    def _outcome(self, outcome: Outcome | Pending, caller: Caller, path: str) -> ModeReply:
        """A pending call is rendered by the surface; in gateway mode handshake clients read it with `tool_view`."""
        if isinstance(outcome, Pending):
            return outcome
        if outcome.result is None:
            error = outcome.error or ViewFailed("The call ended without a result")
            return self._refused(error, caller, path)
        if outcome.result.kind == "json" and self._mode == "gateway":
            return envelope_result(outcome.result)
        return outcome

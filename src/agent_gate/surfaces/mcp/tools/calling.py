"""`tools/call`: from the request's parameters through `Calls` to a result, and what happens while a person is asked."""

import logging
from collections.abc import Awaitable, Coroutine, Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agent_gate.approval.channels.client import answer_in, form
from agent_gate.calls import Calls
from agent_gate.core.call import GIVEN_CONTEXT, Call, Outcome, Pending, State
from agent_gate.core.catalog import Shelf
from agent_gate.core.credentials import CallerSignInNeeded
from agent_gate.core.ports import Clock
from agent_gate.core.tool import Json
from agent_gate.core.validate import unknown_arguments
from agent_gate.errors import GatewayError, InvalidArgs, OutcomeUnknown, ToolNotFound
from agent_gate.mcp.errors import INVALID_PARAMS, RpcError
from agent_gate.mcp.links import SIGN_IN, link_needed, opens_links, unfinished
from agent_gate.mcp.messages import decode, encode
from agent_gate.mcp.names import CALL_TOOL, ELICIT, INPUT_REQUIRED, META_KEY, OURS, PROGRESS, SAID_EACH_TIME
from agent_gate.mcp.results import question_in
from agent_gate.results.artifacts import handle_of
from agent_gate.results.kept import NO_RESULT
from agent_gate.surfaces.mcp.incoming.params import CallParams
from agent_gate.surfaces.mcp.modes import ToolMode, WaitFor
from agent_gate.surfaces.mcp.tools import render
from agent_gate.surfaces.mcp.tools.lists import GATE_RESULT
from agent_gate.surfaces.mcp.tools.sealing import RoundState, StateSealer, subject
from agent_gate.surfaces.mcp.tools.step_up import check_scope
from agent_gate.surfaces.mcp.visit import Visit

log = logging.getLogger("agent_gate.surfaces.mcp")
BEAT_SECONDS = 15.0
HOLD_SECONDS = 50.0
LONGEST_KEY = 256
MOST_ROUNDS = 9
APPROVAL = "approval"
ROUND_MEMBERS = frozenset({"inputResponses", "requestState"})
PASSED_AS_IT_IS = SAID_EACH_TIME | {"progressToken", "traceparent"}
WAITS = "Waiting for a person to approve this call"


def check_responses(responses: Any) -> None:
    """The answers of an earlier round: an object of objects."""
    if not isinstance(responses, dict) or not all(isinstance(one, dict) for one in responses.values()):
        raise RpcError(INVALID_PARAMS, "Invalid params: inputResponses must be an object of objects")


def idempotency_key(meta: Mapping[str, Json]) -> str | None:
    key = meta[META_KEY]
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {META_KEY} must be a string of 1 to {LONGEST_KEY}")
    return key


def passed_meta(wanted: CallParams, state: RoundState | None) -> Mapping[str, Json]:
    """What the source gets to see of the request beside its arguments; a client's own metadata never passes for a state."""
    meta: Mapping[str, Json] = wanted.meta
    if not meta.keys() <= PASSED_AS_IT_IS:
        meta = {
            name: value
            for name, value in meta.items()
            if name == GIVEN_CONTEXT or (not name.startswith(OURS) and name not in ROUND_MEMBERS)
        }
    if wanted.input_responses is not UNSET:
        said = {name: one for name, one in wanted.input_responses.items() if name != SIGN_IN}
        meta = {**meta, "inputResponses": said} if said else meta
    if state is not None:
        meta = {**meta, "requestState": state.value}
    return meta


def round_key(wanted: CallParams) -> str:
    """A further round runs once, whatever key its client names: the same state finds what its first use ended in."""
    return "round:" + sha256(str(wanted.request_state).encode()).hexdigest()


def link_in(error: GatewayError) -> str:
    """The link at which a caller's own person signs in, where that is what the call lacked."""
    return error.link if isinstance(error, CallerSignInNeeded) else ""


class Calling:
    """Answers `tools/call` for every transport and revision."""

    def __init__(
        self,
        calls: Calls,
        shelf: Shelf,
        sealer: StateSealer,
        clock: Clock,
        modes: Mapping[str, ToolMode],
        *,
        hold: float = HOLD_SECONDS,
        beat: float = BEAT_SECONDS,
    ) -> None:
        self._calls, self._shelf, self._sealer, self._clock = calls, shelf, sealer, clock
        self._modes, self._hold, self._beat = modes, hold, beat
        self._soon = min(beat, hold)
        """How long a person may take before a client that wants progress hears something."""

    async def answer(self, visit: Visit, wanted: CallParams) -> bytes:
        """The result object of one call; `RpcError` where the protocol wants an error."""
        state = None
        if wanted.request_state is not UNSET or wanted.input_responses is not UNSET:
            state = await self._recall_round(visit, wanted)
        call = self._call(visit, wanted, state)
        reply: bytes | Outcome | Pending
        if state is not None or wanted.name == GATE_RESULT or visit.mode in self._modes:
            reply = await self._reply(visit, call, state)
        else:
            visit.call_id = call.id
            began = self._clock.monotonic()
            patience = self._soon if "progressToken" in visit.meta else self._hold
            reply = await self._calls.run(call, wait=patience)
            if isinstance(reply, Pending):
                reply = await self._keep_waiting(visit, reply, began)
        try:
            return self._shown(visit, wanted, reply)
        except RpcError:
            raise
        except Exception:  # the boundary: whatever the tool answered, the client is answered
            log.exception("The result of %s cannot be shown", visit.call_id)
            body = render.error_result(OutcomeUnknown(NO_RESULT))
            return render.completed(body) if visit.revision.types_results else body

    def _reply(
        self, visit: Visit, call: Call, state: RoundState | None
    ) -> Awaitable[bytes | Outcome | Pending]:
        """The answer to anything but a plain call: of a mode's own tool, a further round, a question for an outcome."""
        resumes = state.value if state is not None and state.kind == "call" else None
        mode = self._modes.get(visit.mode)
        reply = mode.call(call, resumes, partial(self._hold_request, visit)) if mode is not None else None
        if resumes is not None or call.tool == GATE_RESULT:
            return reply or self._look_up(visit, call.arguments, resumes)
        visit.call_id = call.id
        return reply or self._hold_request(visit, lambda seconds: self._calls.run(call, wait=seconds))

    async def read(self, visit: Visit, wanted: CallParams) -> Outcome | Pending:
        """Ask a source for a resource or a prompt: a call like any other, of what no tool's name can reach."""
        state = None
        if wanted.request_state is not UNSET or wanted.input_responses is not UNSET:
            state = await self._recall_round(visit, wanted)
        if state is not None and state.kind == "call":
            return await self._look_up(visit, {}, state.value)
        call = replace(self._call(visit, wanted, state), reads=True)
        visit.call_id = call.id
        return await self._hold_request(visit, lambda seconds: self._calls.run(call, wait=seconds))

    def refuse(self, visit: Visit, wanted: CallParams, error: GatewayError) -> None:
        self._calls.refuse(self._call(visit, wanted, None), error)

    async def _recall_round(self, visit: Visit, wanted: CallParams) -> RoundState | None:
        """What an earlier round of this call left behind, and what the person behind the client said since."""
        responses = wanted.input_responses
        if responses is not UNSET:
            check_responses(responses)
        if wanted.request_state is UNSET:
            return None
        about = subject(CALL_TOOL, wanted.name, wanted.arguments)
        state = self._sealer.open(wanted.request_state, visit.caller.name, about)
        visit.rounds = state.rounds
        if state.kind == "call" and responses is not UNSET and APPROVAL in responses:
            answer = answer_in(responses[APPROVAL], visit.caller.name)
            if answer is not None:
                await self._calls.client_answered(state.value, visit.caller, answer)
        return state

    def _call(self, visit: Visit, wanted: CallParams, state: RoundState | None) -> Call:
        meta, key = wanted.meta, None
        if state is not None:
            key = round_key(wanted)
        elif META_KEY in meta:
            key = idempotency_key(meta)
        trace = meta.get("traceparent")
        return Call(
            tool=wanted.name,
            arguments=wanted.given or {},
            caller=visit.caller,
            surface="mcp",
            session=visit.agent_session,
            client_id=decode(visit.id),
            idempotency_key=key,
            trace=trace if isinstance(trace, str) else visit.trace,
            continues=state is not None,
            meta=passed_meta(wanted, state),
            conversation=visit,
            sender=visit.sender,
        )

    async def _look_up(
        self, visit: Visit, arguments: Mapping[str, Json], resumes: str | None
    ) -> Outcome | Pending:
        """The outcome of a call that was made before; it never runs again."""
        ident = resumes if resumes is not None else arguments.get("id")
        if not isinstance(ident, str) or (resumes is None and len(arguments) != 1):
            error = InvalidArgs(f"{GATE_RESULT} takes one argument: id, the id of the call that waits")
            return Outcome(call_id="", state=State.REFUSED, error=error)
        return await self._hold_request(
            visit, lambda seconds: self._calls.await_outcome(ident[:64], visit.caller, wait=seconds)
        )

    async def _hold_request(self, visit: Visit, first: WaitFor) -> Outcome | Pending:
        """Hold the request while a person is asked."""
        began = self._clock.monotonic()
        reply = await first(self._soon if "progressToken" in visit.meta else self._hold)
        return await self._keep_waiting(visit, reply, began) if isinstance(reply, Pending) else reply

    async def _keep_waiting(self, visit: Visit, reply: Outcome | Pending, began: float) -> Outcome | Pending:
        """Go on waiting for a person, with a sign of life where the client wants progress."""
        while visit.progress_token is not None and isinstance(reply, Pending) and reply.question is None:
            waited = self._clock.monotonic() - began
            if waited >= self._hold:
                break
            await visit.notify(PROGRESS, {"progress": round(waited, 3), "message": WAITS})
            pause = min(self._beat, self._hold - waited)
            reply = await self._calls.await_outcome(reply.call_id, visit.caller, wait=pause)
        return reply

    def _shown(self, visit: Visit, wanted: CallParams, reply: bytes | Outcome | Pending) -> bytes:
        if isinstance(reply, Pending):
            return self.waiting(visit, wanted, reply)
        if isinstance(reply, Outcome):
            if reply.error is not None and (link := link_in(reply.error)):
                return self._link(visit, reply.error, link)
            if isinstance(reply.error, ToolNotFound):
                check_scope(visit.caller, wanted.name, self._shelf.catalog)
            tool = self._shelf.catalog.names.get(wanted.name)
            body = render.outcome_result(reply, tool.source if tool is not None else "", visit.revision)
            given = wanted.given
            if tool is not None and given and not given.keys() <= tool.declared.names:
                body = render.with_unknown(body, unknown_arguments(tool, given))
        else:
            body = reply
        if not visit.revision.types_results:
            return body
        asking = question_in(body)
        if asking is not None and asking.request_state is not None:
            body = render.with_state(body, self.seal(visit, wanted, "source", asking.request_state))
        return render.completed(body)

    def _link(self, visit: Visit, error: GatewayError, link: str) -> bytes:
        """The link at which the caller's person signs in, as a question of the protocol where the client shows links."""
        if not opens_links(visit.capabilities):
            body = render.error_result(error)
        elif self.comes_back(visit):
            body = unfinished(link, error.message, visit.revision)
        else:
            raise link_needed(link, error.message, visit.revision)
        return render.completed(body) if visit.revision.types_results else body

    def comes_back(self, visit: Visit) -> bool:
        """Whether the client can be sent back once more; the official ones give up after ten times, without a word."""
        return visit.comes_back and visit.rounds < MOST_ROUNDS

    def waiting(self, visit: Visit, wanted: CallParams, pending: Pending) -> bytes:
        if self.comes_back(visit):
            state = self.seal(visit, wanted, "call", pending.call_id)
            more: dict[str, Json] = {}
            if pending.question is not None:
                more["inputRequests"] = {APPROVAL: {"method": ELICIT, "params": form(pending.question)}}
            return render.completed(encode({"resultType": INPUT_REQUIRED, "requestState": state, **more}))
        tool = self._shelf.catalog.names.get(wanted.name)
        promised = tool is not None and tool.definition.output_schema is not None
        body = render.waiting_result(pending, self.later(visit, pending), is_error=promised)
        return render.completed(body) if visit.revision.types_results else body

    def later(self, visit: Visit, pending: Pending) -> str:
        """How the outcome is asked for, with a tool that this mode lists."""
        if visit.mode in self._modes:
            wanted = {"handle": handle_of(pending.call_id), "selector": {"type": "head"}}
            return f"tool_view with {encode(wanted).decode()}"
        return f"{GATE_RESULT} with {encode({'id': pending.call_id}).decode()}"

    def seal(self, visit: Visit, wanted: CallParams, kind: Any, value: str) -> str:
        about = subject(CALL_TOOL, wanted.name, wanted.arguments)
        return self._sealer.seal(visit.caller.name, about, kind, value, visit.rounds + 1)

    def left(self, visit: Visit) -> Coroutine[Any, Any, bool] | None:
        """The client hung up: a running call is cancelled, one that waits for a person goes on waiting."""
        running = any(one.case.call.id == visit.call_id for one in self._calls.running())
        return self._calls.cancel(visit.call_id, visit.caller) if running else None

    async def cancelled(self, visit: Visit) -> None:
        """The client said that it no longer wants the answer."""
        if visit.call_id:
            await self._calls.cancel(visit.call_id, visit.caller)

"""What the record says of a call at each state: the bodies of its rows, secrets masked; and calls ahead of theirs."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

import msgspec

from agent_gate.audit.record import encode as encode_body
from agent_gate.audit.record import row
from agent_gate.calls.admit import Draft
from agent_gate.core.approval import Approval
from agent_gate.core.call import Case, Outcome, State, encode
from agent_gate.core.signature import unvalued
from agent_gate.core.validate import unknown_arguments
from agent_gate.errors import GatewayError, OutcomeUnknown
from agent_gate.observe.redact import Redactor, mask_arguments
from agent_gate.store.statement import Statement, Store

LONGEST_CAME = 2_000
DISPATCHING = State.DISPATCHING
TICK = 0.05


def text(arguments: Mapping[str, Any]) -> str:
    return encode(arguments).decode()


class Decided(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """Everything that was decided on; written once, with the first row of the call."""

    approval: str = ""
    arguments: Mapping[str, Any]
    arguments_hash: str = ""
    client_id: Any = None
    decision: str
    definition_hash: str
    expires_at: float = 0.0
    facts: Mapping[str, str] | None = None
    groups: Sequence[str] = ()
    grant: str | None = None
    idempotency_key: str | None = None
    person: str = ""
    reason: str
    received: float = 0.0
    rule: str
    session: str | None = None
    signature: str
    source: str
    surface: str
    trace: str | None = None
    unknown_arguments: Sequence[str] = ()
    where: str
    wire: str


class Settled(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """How a call ended: of its result only the size and digest are kept, of what was no result its beginning."""

    came: str = ""
    digest: str = ""
    error: Mapping[str, str] | None = None
    marks: Mapping[str, float]
    size: int | None = None


def shown_arguments(case: Case) -> Mapping[str, Any]:
    """The arguments as people may see them."""
    secret = case.tool.definition.secret
    return mask_arguments(case.call.arguments, secret) if secret else case.call.arguments


def decided(case: Case) -> Decided:
    call, tool, decision = case.call, case.tool, case.decision
    arguments = call.arguments
    known = arguments.keys() <= tool.declared.names
    return Decided(
        arguments=shown_arguments(case) if tool.definition.secret else arguments,
        arguments_hash=case.arguments_hash,
        client_id=call.client_id,
        decision=decision.effect,
        definition_hash=case.definition_hash,
        facts=case.facts or None,
        grant=decision.grant,
        groups=sorted(call.caller.groups) if call.caller.groups else (),
        idempotency_key=call.idempotency_key,
        person=call.caller.person,
        reason=decision.reason,
        rule=decision.rule,
        session=call.session,
        unknown_arguments=() if known else unknown_arguments(tool, arguments),
        signature=case.signature,
        source=tool.source,
        surface=call.surface,
        trace=call.trace,
        where=decision.where,
        wire=tool.wire,
    )


def pending(case: Case, approval: Approval, received: float) -> Statement:
    """The question, and when its call came in: whoever performs it later knows only when it was asked."""
    body = decided(case)
    body.approval, body.expires_at, body.received = approval.id, approval.asked.expires_at, received
    return row(case.call.id, State.PENDING, approval.asked.at, case.call.caller.name, case.tool.id, body)


def answered(ended: Approval, at: float) -> Statement:
    said = ended.answered
    who: dict[str, Any] = {
        "approval": ended.id,
        "by": said.by,
        "channel": said.channel,
        "lifetime": said.lifetime,
        "reason": said.reason,
    }
    if ended.yeses:
        who["yeses"] = list(ended.yeses)
    return row(ended.call_id, ended.state, at, ended.caller.name, ended.tool_id, who)


def dispatching(case: Case, at: float, *, asked: bool) -> Statement:
    body = {"approved": True} if asked else decided(case)
    return row(case.call.id, DISPATCHING, at, case.call.caller.name, case.tool.id, body)


def settled(
    case: Case, outcome: Outcome, at: float, marks: dict[str, float], redactor: Redactor, *, whole: bool
) -> Statement:
    """How the call ended; `whole` for the only row of a call, which says everything."""
    if outcome.result is None:
        body = Settled(marks=marks)
    else:
        came = outcome.result.body
        body = Settled(digest=sha256(came).hexdigest(), marks=marks, size=len(came))
    if outcome.error is not None:
        body.error = {"code": outcome.error.code, "message": redactor.text(outcome.error.message)[:1000]}
        if isinstance(outcome.error, OutcomeUnknown) and outcome.error.came:
            body.came = redactor.text(outcome.error.came[:LONGEST_CAME].decode("utf-8", "replace"))
    told = joined(decided(case), body) if whole else body
    return row(case.call.id, outcome.state, at, case.call.caller.name, case.tool.id, told)


def joined(first: Decided, then: Settled) -> msgspec.Raw:
    """Both in one object; neither is ever empty, and they share no member."""
    return msgspec.Raw(encode_body(first)[:-1] + b"," + encode_body(then)[1:])


def lost(call_id: str, caller: str, tool: str, at: float, error: GatewayError) -> Statement:
    return row(
        call_id, State.UNKNOWN, at, caller, tool, {"error": {"code": error.code, "message": error.message}}
    )


def refused(draft: Draft, error: GatewayError, at: float, redactor: Redactor, count: int = 1) -> Statement:
    """A call that never ran. Of an unknown tool only the names of its arguments are kept."""
    call = draft.call
    tool, decision = draft.known_tool, draft.known_decision
    body: dict[str, Any] = {
        "error": {"code": error.code, "message": redactor.text(error.message)[:1000]},
        "surface": call.surface,
        "asked": call.tool[:200],
    }
    if tool is None:
        body["signature"] = unvalued(call.tool[:200], list(call.arguments)[:20])[:400]
    else:
        body["arguments"] = mask_arguments(call.arguments, tool.definition.secret)
        body["signature"] = draft.signature or tool.wire
    if decision is not None:
        body |= {"decision": decision.effect, "rule": decision.rule, "where": decision.where}
    if count > 1:
        body["count"] = count
    return row(call.id, State.REFUSED, at, call.caller.name, tool.id if tool else "", body)


def voided(approval: Approval, error: GatewayError, at: float) -> Statement:
    """An approved call that could not run any more; nothing was sent."""
    body = {"error": {"code": error.code, "message": error.message}}
    return row(approval.call_id, State.FAILED, at, approval.caller.name, approval.tool_id, body)


class Ahead:
    """Calls of trusted read-only tools that run ahead of their row, by id, each with the time it was dispatched.

    Most of them end within one tick; such a call gets one row, which says what was decided and how it ended. One that
    is still running then gets its row `dispatching` like every other call.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unwritten: dict[str, tuple[Case, float]] = {}
        self._ticking = False

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def add(self, case: Case, at: float) -> None:
        self._unwritten[case.call.id] = (case, at)
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(TICK, self.catch_up)

    def remove(self, call_id: str) -> bool:
        """The call ended; whether it still has no row."""
        return self._unwritten.pop(call_id, None) is not None

    def catch_up(self) -> None:
        """Write the rows of the calls that are still running."""
        self._ticking = False
        running, self._unwritten = self._unwritten, {}
        for case, at in running.values():
            self._store.post(dispatching(case, at, asked=False))

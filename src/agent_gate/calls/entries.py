"""What the record says of a call at each state: the bodies of its rows, secrets masked."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from agent_gate.audit.record import row
from agent_gate.calls.admit import Draft
from agent_gate.core.approval import Approval
from agent_gate.core.call import Case, Outcome, State, encode
from agent_gate.core.signature import undeclared
from agent_gate.errors import GatewayError
from agent_gate.observe.redact import Redactor, mask_arguments
from agent_gate.store.statement import Statement


def text(arguments: Mapping[str, Any]) -> str:
    return encode(arguments).decode()


def case_body(case: Case) -> dict[str, Any]:
    """Everything that was decided on; written once, with the first row of the call."""
    call, tool, decision = case.call, case.tool, case.decision
    body: dict[str, Any] = {
        "wire": tool.wire,
        "signature": case.signature,
        "arguments": mask_arguments(call.arguments, tool.definition.secret),
        "definition_hash": case.definition_hash,
        "decision": decision.effect,
        "rule": decision.rule,
        "where": decision.where,
        "reason": decision.reason,
        "surface": call.surface,
        "source": tool.source,
    }
    optional = {
        "arguments_hash": case.arguments_hash,
        "session": call.session,
        "client_id": call.client_id,
        "idempotency_key": call.idempotency_key,
        "trace": call.trace,
        "grant": decision.grant,
    }
    body.update({name: value for name, value in optional.items() if value})
    return body


def pending(case: Case, approval: Approval) -> Statement:
    body = case_body(case) | {"approval": approval.id, "expires_at": approval.expires_at}
    return row(case.call.id, State.PENDING, approval.asked_at, case.call.caller.name, case.tool.id, body)


def answered(approval: Approval, state: State, at: float, who: dict[str, Any]) -> Statement:
    return row(
        approval.call_id, state, at, approval.caller.name, approval.tool_id, {"approval": approval.id, **who}
    )


def dispatching(case: Case, at: float, *, asked: bool) -> Statement:
    body = {"approved": True} if asked else case_body(case)
    return row(case.call.id, State.DISPATCHING, at, case.call.caller.name, case.tool.id, body)


def settled(
    case: Case, outcome: Outcome, at: float, marks: dict[str, float], redactor: Redactor
) -> Statement:
    body: dict[str, Any] = {"marks": marks}
    if outcome.result is not None:
        body["size"] = len(outcome.result.body)
        body["digest"] = sha256(outcome.result.body).hexdigest()
    if outcome.error is not None:
        body["error"] = {"code": outcome.error.code, "message": redactor.text(outcome.error.message)[:1000]}
    return row(case.call.id, outcome.state, at, case.call.caller.name, case.tool.id, body)


def lost(call_id: str, caller: str, tool: str, at: float, error: GatewayError) -> Statement:
    return row(
        call_id, State.UNKNOWN, at, caller, tool, {"error": {"code": error.code, "message": error.message}}
    )


def refused(draft: Draft, error: GatewayError, at: float, redactor: Redactor, count: int = 1) -> Statement:
    """A call that never ran. Of an unknown tool only the names of its arguments are kept."""
    call = draft.call
    tool = getattr(draft, "tool", None)
    body: dict[str, Any] = {
        "error": {"code": error.code, "message": redactor.text(error.message)[:1000]},
        "surface": call.surface,
        "asked": call.tool[:200],
    }
    if tool is None:
        body["signature"] = undeclared(call.tool[:200], dict.fromkeys(list(call.arguments)[:20], ""))[:400]
    else:
        body["arguments"] = mask_arguments(call.arguments, tool.definition.secret)
        body["signature"] = draft.signature or tool.wire
    if hasattr(draft, "decision"):
        body |= {
            "decision": draft.decision.effect,
            "rule": draft.decision.rule,
            "where": draft.decision.where,
        }
    if count > 1:
        body["count"] = count
    return row(call.id, State.REFUSED, at, call.caller.name, tool.id if tool else "", body)


def voided(approval: Approval, error: GatewayError, at: float) -> Statement:
    """An approved call that could not run any more; nothing was sent."""
    body = {"error": {"code": error.code, "message": error.message}}
    return row(approval.call_id, State.FAILED, at, approval.caller.name, approval.tool_id, body)

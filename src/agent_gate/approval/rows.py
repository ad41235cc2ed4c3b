"""Approvals and grants to SQL and back."""

from dataclasses import fields, replace
from typing import Any, get_args

import msgspec

from agent_gate.approval.sealed import SealsValues, open_arguments, seal_arguments
from agent_gate.core.approval import Approval, Grant, Lifetime
from agent_gate.core.call import Caller, Decision, State
from agent_gate.store.statement import Record, Statement

APPROVAL_COLUMNS = (
    "id, call, caller, session, tool, signature, arguments_hash, definition_hash, state, asked_at, expires_at, "
    "answered_at, answered_by, channel, reason, body, verdict"
)
INSERT_APPROVAL = (
    "INSERT INTO approvals (id, call, caller, session, tool, signature, arguments_hash, definition_hash, state, "
    "asked_at, expires_at, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
RESOLVE_APPROVAL = (
    "UPDATE approvals SET state = ?, answered_at = ?, answered_by = ?, channel = ?, verdict = ?, reason = ? "
    "WHERE id = ? AND state = 'pending'"
)
GRANT_COLUMNS = "id, caller, tool, arguments_hash, definition_hash, session, created_at, expires_at, created_by, approval, used, body"
INSERT_GRANT = (
    "INSERT INTO grants (id, caller, tool, arguments_hash, definition_hash, session, created_at, expires_at, "
    "created_by, approval, used, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)"
)
LIFETIMES = get_args(Lifetime)
IN_BODY = (
    "wire",
    "arguments",
    "surface",
    "mode",
    "sentence",
    "secret",
    "client_id",
    "idempotency_key",
    "timeout",
    "meta",
    "trace",
    "filled",
)


def plain(value: Any) -> Any:
    """A frozen dataclass as a JSON object; sets become sorted lists."""
    out = {f.name: getattr(value, f.name) for f in fields(value)}
    return {name: sorted(item) if isinstance(item, frozenset) else item for name, item in out.items()}


def approval_body(approval: Approval, key: SealsValues | None) -> str:
    body = {name: getattr(approval, name) for name in IN_BODY}
    body["arguments"], sealed = seal_arguments(approval, key)
    if sealed:
        body["sealed"] = sealed
    body["secret"], body["filled"] = sorted(approval.secret), sorted(approval.filled)
    body["caller"] = plain(approval.caller)
    body["decision"] = plain(replace(approval.decision, considered=()))
    return msgspec.json.encode(body).decode()


def insert_approval(a: Approval, key: SealsValues | None = None) -> Statement:
    params = (
        a.id,
        a.call_id,
        a.caller.name,
        a.session,
        a.tool_id,
        a.signature,
        a.arguments_hash,
        a.definition_hash,
    )
    return Statement(INSERT_APPROVAL, (*params, a.state, a.asked_at, a.expires_at, approval_body(a, key)))


def resolve_approval(a: Approval) -> Statement:
    verdict = a.lifetime if a.state is State.APPROVED else "deny"
    params = (a.state, a.answered_at, a.answered_by, a.channel, verdict, a.reason, a.id)
    return Statement(RESOLVE_APPROVAL, params, expect=1)


def caller_of(data: dict[str, Any]) -> Caller:
    namespaces = data.get("namespaces")
    known = {f.name for f in fields(Caller)}
    return Caller(
        **{k: v for k, v in data.items() if k in known}
        | {"namespaces": None if namespaces is None else frozenset(namespaces)}
    )


def decision_of(data: dict[str, Any]) -> Decision:
    return Decision(**data | {"approvers": tuple(data.get("approvers") or ()), "considered": ()})


def approval_of(row: Record, key: SealsValues | None = None) -> Approval:
    body = msgspec.json.decode(row[15])
    sealed = body.pop("sealed", "")
    kept = Approval(
        id=row[0],
        call_id=row[1],
        session=row[3],
        tool_id=row[4],
        signature=row[5],
        arguments_hash=row[6],
        definition_hash=row[7],
        state=State(row[8]),
        asked_at=row[9],
        expires_at=row[10],
        answered_at=row[11],
        answered_by=row[12] or "",
        channel=row[13] or "",
        reason=row[14] or "",
        lifetime=row[16] if row[16] in LIFETIMES else "once",
        caller=caller_of(body.pop("caller")),
        decision=decision_of(body.pop("decision")),
        secret=frozenset(body.pop("secret")),
        filled=frozenset(body.pop("filled", ())),
        **body,
    )
    return open_arguments(kept, sealed, key)


def insert_grant(g: Grant) -> Statement:
    params = (
        g.id,
        g.caller,
        g.tool_id,
        g.arguments_hash,
        g.definition_hash,
        g.session,
        g.created_at,
        g.expires_at,
    )
    body = msgspec.json.encode({"signature": g.signature}).decode()
    return Statement(INSERT_GRANT, (*params, g.created_by, g.approval_id, body))


def grant_of(row: Record) -> Grant:
    return Grant(
        id=row[0],
        caller=row[1],
        tool_id=row[2],
        arguments_hash=row[3],
        definition_hash=row[4],
        session=row[5],
        created_at=row[6],
        expires_at=row[7],
        created_by=row[8],
        approval_id=row[9] or "",
        used=row[10],
        signature=msgspec.json.decode(row[11])["signature"],
    )

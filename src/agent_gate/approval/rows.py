"""Approvals and grants to SQL and back."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import structs

from agent_gate.core.approval import Answered, Approval, Asked, Grant, Hashes, Lifetime
from agent_gate.core.call import Call, Decision, State
from agent_gate.observe.redact import mask_arguments
from agent_gate.store.statement import Record, Statement

APPROVAL_COLUMNS = (
    *("id", "call", "caller", "session", "tool", "signature", "arguments_hash", "definition_hash", "state"),
    *("asked_at", "expires_at", "answered_at", "answered_by", "channel", "reason", "body", "verdict"),
    *("terms", "gateway"),
)
SELECT_APPROVALS = f"SELECT {', '.join(APPROVAL_COLUMNS)} FROM approvals"
INSERT_APPROVAL = (
    "INSERT INTO approvals (id, call, caller, session, tool, signature, arguments_hash, definition_hash, state, "
    "asked_at, expires_at, body, gateway) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_WITHIN = (
    INSERT_APPROVAL.replace("VALUES (", "SELECT ").removesuffix(")")
    + " WHERE (SELECT count(*) FROM approvals WHERE caller = ? AND state = 'pending') < ?"
)
RESOLVE_APPROVAL = (
    "UPDATE approvals SET state = ?, answered_at = ?, answered_by = ?, channel = ?, verdict = ?, reason = ?, "
    "terms = ?, gateway = ? WHERE id = ? AND state = 'pending'"
)
LET_GO = "UPDATE approvals SET gateway = NULL WHERE call = ? AND (gateway = ? OR gateway IS NULL)"
TAKE_OVER = "UPDATE approvals SET gateway = ? WHERE id = ? AND state = 'approved' AND gateway = ?"
GIVE_UP = "UPDATE approvals SET gateway = NULL WHERE state = 'approved' AND gateway = ?"
OWED = f"{SELECT_APPROVALS} WHERE state = 'approved' AND gateway IS NOT NULL ORDER BY asked_at"
GRANT_COLUMNS = (
    *("id", "caller", "tool", "arguments_hash", "definition_hash", "session", "created_at", "expires_at"),
    *("created_by", "approval", "used", "body"),
)
SELECT_GRANTS = f"SELECT {', '.join(GRANT_COLUMNS)} FROM grants"
INSERT_GRANT = (
    f"INSERT INTO grants ({', '.join(GRANT_COLUMNS)}) VALUES ({', '.join('?' * len(GRANT_COLUMNS))})"
)
LIFETIMES = get_args(Lifetime)
IN_BODY = tuple(field.name for field in fields(Asked) if field.name not in ("at", "expires_at"))
"""How a question was put, beside the times that have columns of their own."""
LIVE = ("conversation", "sender")
"""What of a call is its sender's; everything else is kept."""
KEPT = {
    name: hint
    for name, hint in get_type_hints(Call, localns={"Conversation": object, "Sender": object}).items()
    if name not in LIVE
}


def plain_call(call: Call) -> dict[str, Any]:
    return {name: getattr(call, name) for name in KEPT}


def call_of(data: Mapping[str, Any]) -> Call:
    """A call as it was kept; what this version does not know of it is left out."""
    return Call(**{name: msgspec.convert(data[name], KEPT[name]) for name in KEPT if name in data})


def approval_body(approval: Approval) -> str:
    body = {name: getattr(approval.asked, name) for name in IN_BODY}
    arguments = mask_arguments(approval.arguments, approval.asked.secret)
    body["call"] = plain_call(structs.replace(approval.call, arguments=arguments))
    body["decision"] = replace(approval.decision, considered=())
    return msgspec.json.encode(body).decode()


def insert_within(a: Approval, most: int) -> Statement:
    """As `insert_approval`, where fewer than `most` of the caller's questions are open; misses where not."""
    whole = insert_approval(a)
    return Statement(INSERT_WITHIN, (*whole.params, a.caller.name, most), expect=1)


def insert_approval(a: Approval) -> Statement:
    params = (
        a.id,
        a.call_id,
        a.caller.name,
        a.session,
        a.tool_id,
        a.signature,
        a.hashes.arguments,
        a.hashes.definition,
    )
    when = (a.asked.at, a.asked.expires_at)
    return Statement(INSERT_APPROVAL, (*params, a.state, *when, approval_body(a), a.gateway or None))


def letting_go(call_id: str, gateway: str) -> Statement:
    """Goes with the row that dispatches a call, or says that it will not run: nobody has to run it any more. Misses where
    another gateway has taken it over."""
    return Statement(LET_GO, (call_id, gateway), expect=1)


def giving_up(gateway: str) -> Statement:
    """Leaves nothing for this gateway to run, nor for another in its place."""
    return Statement(GIVE_UP, (gateway,))


def taking_over(a: Approval, gateway: str) -> Statement:
    """Makes `gateway` the one that runs the call, in the place of one that is gone; misses where another was first."""
    return Statement(TAKE_OVER, (gateway, a.id, a.gateway), expect=1)


def resolve_approval(a: Approval) -> Statement:
    said = a.answered
    verdict = said.lifetime if a.state is State.APPROVED else "deny"
    terms = msgspec.json.encode(said.terms).decode() if said.terms else None
    params = (a.state, said.at, said.by, said.channel, verdict, said.reason, terms, a.gateway or None, a.id)
    return Statement(RESOLVE_APPROVAL, params, expect=1)


def approval_of(record: Record) -> Approval:
    """The question as it was stored: where an argument is secret, with a mask in its place."""
    row = dict(zip(APPROVAL_COLUMNS, record, strict=True))
    body = msgspec.json.decode(row["body"])
    return Approval(
        id=row["id"],
        call=call_of(body.get("call") or earlier_call(row, body)),
        signature=row["signature"],
        hashes=Hashes(row["arguments_hash"], row["definition_hash"]),
        decision=msgspec.convert(body["decision"], Decision),
        asked=msgspec.convert(body | {"at": row["asked_at"], "expires_at": row["expires_at"]}, Asked),
        answered=answered_of(row),
        state=State(row["state"]),
        gateway=row["gateway"] or "",
    )


def answered_of(row: Mapping[str, Any]) -> Answered:
    return Answered(
        at=row["answered_at"],
        by=row["answered_by"] or "",
        channel=row["channel"] or "",
        reason=row["reason"] or "",
        lifetime=row["verdict"] if row["verdict"] in LIFETIMES else "once",
        terms=msgspec.json.decode(row["terms"]) if row["terms"] else {},
    )


def earlier_call(row: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """The call of a row of version 0.1.0, whose body had the call's fields beside the question's."""
    return {**body, "id": row["call"], "session": row["session"], "tool": row["tool"]}


def insert_grant(g: Grant) -> Statement:
    row = {
        "id": g.id,
        "caller": g.caller,
        "tool": g.tool_id,
        "arguments_hash": g.arguments_hash,
        "definition_hash": g.definition_hash,
        "session": g.session,
        "created_at": g.created_at,
        "expires_at": g.expires_at,
        "created_by": g.created_by,
        "approval": g.approval_id,
        "used": 0,
        "body": msgspec.json.encode({"signature": g.signature}).decode(),
    }
    return Statement(INSERT_GRANT, tuple(row[name] for name in GRANT_COLUMNS))


def grant_of(record: Record) -> Grant:
    row = dict(zip(GRANT_COLUMNS, record, strict=True))
    return Grant(
        id=row["id"],
        caller=row["caller"],
        tool_id=row["tool"],
        arguments_hash=row["arguments_hash"],
        definition_hash=row["definition_hash"],
        session=row["session"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        created_by=row["created_by"],
        approval_id=row["approval"] or "",
        used=row["used"],
        signature=msgspec.json.decode(row["body"])["signature"],
    )

"""Approvals, grants, calls and tools as the operator sees them: complete, masked, nothing hidden."""

from dataclasses import asdict
from typing import Any

from agent_gate.approval.grants import describe
from agent_gate.core.approval import Approval, Grant
from agent_gate.core.call import Decision
from agent_gate.core.tool import Tool
from agent_gate.observe.redact import mask_arguments

LIFETIMES = ("once", "session", "hour", "always")


def approval(a: Approval) -> dict[str, Any]:
    """One question with everything a person needs to judge it."""
    offered = [life for life in LIFETIMES if life != "session" or a.session is not None]
    return {
        "id": a.id,
        "call": a.call_id,
        "state": str(a.state),
        "agent": a.caller.name,
        "tool": a.wire,
        "tool_id": a.tool_id,
        "signature": a.signature,
        "sentence": a.sentence,
        "arguments": mask_arguments(a.arguments, a.secret),
        "arguments_hash": a.arguments_hash,
        "rule": a.decision.rule,
        "where": a.decision.where,
        "reason": a.decision.reason,
        "approvers": list(a.decision.approvers),
        "surface": a.surface,
        "session": a.session,
        "asked_at": a.asked_at,
        "expires_at": a.expires_at,
        "answered_at": a.answered_at,
        "answered_by": a.answered_by,
        "answered_on": a.channel,
        "answer_reason": a.reason,
        "choices": {life: describe(a, life) for life in offered},  # type: ignore[arg-type]
    }


def grant(g: Grant) -> dict[str, Any]:
    return asdict(g)


def tool(t: Tool) -> dict[str, Any]:
    return {
        "id": t.id,
        "name": t.wire,
        "namespace": t.namespace,
        "source": t.source,
        "title": t.definition.title or t.upstream,
        "description": t.description,
        "available": t.available,
        "input_schema": t.input_schema,
        "output_schema": t.definition.output_schema,
        "traits": asdict(t.traits),
        "pin": t.pin,
    }


def decision(d: Decision) -> dict[str, Any]:
    considered = [
        {
            "rule": c.rule.label(),
            "where": c.rule.where,
            "action": c.rule.action,
            "matched": c.matched,
            "why": c.why,
            "default": c.rule.default,
        }
        for c in d.considered
    ]
    return {
        "effect": d.effect,
        "rule": d.rule,
        "where": d.where,
        "reason": d.reason,
        "considered": considered,
    }

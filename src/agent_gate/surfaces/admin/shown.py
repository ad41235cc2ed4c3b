"""Approvals, grants, rules and tools as the operator sees them: complete, masked, nothing hidden."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any

import msgspec

from agent_gate.approval.grants import describe
from agent_gate.approval.render import fate
from agent_gate.core.approval import Approval, Grant
from agent_gate.core.call import Decision, Outcome
from agent_gate.core.facts import named
from agent_gate.core.signature import placeholders
from agent_gate.core.tool import Json, Tool
from agent_gate.observe.redact import mask_arguments
from agent_gate.policy.rule import Rule

SHORT = 200
IN_A_LINE = 60
MISREAD = re.compile(r"|\s.*|.*\s|\".*\"|true|false|null|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?")
LIFETIMES = ("once", "session", "hour", "always")


def signed(a: Approval, tool: Tool | None) -> Collection[str]:
    """The arguments that the signature shows."""
    template = tool.definition.template if tool is not None else None
    return a.arguments if template is None else placeholders(template)


def in_declared_order(arguments: Mapping[str, Json], tool: Tool | None) -> dict[str, Json]:
    """The arguments as the tool declares them, then those it does not."""
    order = tool.input_schema.get("properties") or {} if tool is not None else {}
    first = {name: arguments[name] for name in order if name in arguments}
    return first | {name: value for name, value in arguments.items() if name not in first}


def line(a: Approval, tool: Tool | None) -> str:
    """A call as a list shows it: its own template, else every value in declared order, each cut by itself."""
    if tool is not None and tool.definition.template:
        return a.signature
    masked = in_declared_order(mask_arguments(a.arguments, a.asked.secret), tool)
    values = ", ".join(f"{name}={clipped(as_line(value))}" for name, value in masked.items())
    return f"{a.asked.wire}({values})"


def as_line(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def clipped(text: str) -> str:
    return text if len(text) <= IN_A_LINE else f"{text[:IN_A_LINE]}…"


def approval_row(a: Approval, tool: Tool | None) -> dict[str, Any]:
    """One question in a line, for lists of thousands."""
    shows = signed(a, tool)
    return {
        "id": a.id,
        "call": a.call_id,
        "state": str(a.state),
        "agent": a.caller.name,
        "tool": a.asked.wire,
        "signature": a.signature,
        "line": line(a, tool),
        "wants_number": bool(a.asked.number),
        "count": a.decision.count,
        "yeses": list(a.yeses),
        "sentence": a.asked.sentence,
        "not_in_signature": [name for name in a.arguments if name not in shows],
        "asked_at": a.asked.at,
        "expires_at": a.asked.expires_at,
        "answered_at": a.answered.at,
        "answered_by": a.answered.by,
        "answered_on": a.answered.channel,
        "answer_reason": a.answered.reason,
        "lifetime": a.answered.lifetime,
    }


def approval(a: Approval, tool: Tool | None) -> dict[str, Any]:
    """One question with everything a person needs to judge it."""
    lifetimes = ("once",) if a.asked.number or a.decision.count > 1 else LIFETIMES
    offered = [life for life in lifetimes if life != "session" or a.session is not None]
    return approval_row(a, tool) | {
        "tool_id": a.tool_id,
        "description": tool.description if tool is not None else "",
        "traits": traits(tool) if tool is not None else [],
        "source": tool.source if tool is not None else "",
        "arguments": in_declared_order(mask_arguments(a.arguments, a.asked.secret), tool),
        "arguments_hash": a.hashes.arguments,
        "facts": a.asked.facts or {},
        "picture": a.asked.picture,
        "rule": a.decision.rule,
        "where": a.decision.where,
        "reason": a.decision.reason,
        "near": a.decision.near,
        "approvers": list(a.decision.approvers),
        "surface": a.call.surface,
        "session": a.session,
        "terms": a.answered.terms,
        "choices": {life: describe(a, life) for life in offered},  # type: ignore[arg-type]
    }


def as_text(value: Json) -> str:
    """A string as it is; anything else as indented JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def spelled(value: Json) -> str:
    """The same, in quotes where a short text could be read as nothing, as a number, or without its blanks."""
    if isinstance(value, str) and len(value) <= SHORT and MISREAD.fullmatch(value):
        return json.dumps(value, ensure_ascii=False)
    return as_text(value)


def details(a: Approval, tool: Tool | None) -> list[dict[str, Any]]:
    """Every argument by itself: its text, size and digest, and whether the signature shows it."""
    return list(_details(a, tool))


def _details(a: Approval, tool: Tool | None) -> Iterator[dict[str, Any]]:
    shows = signed(a, tool)
    masked = in_declared_order(mask_arguments(a.arguments, a.asked.secret), tool)
    facts = named(a.asked.facts)
    for name, value in {**masked, **facts}.items():
        text = as_text(a.arguments.get(name, value))
        secret = name in a.asked.secret
        yield {
            "name": name,
            "text": spelled(value),
            "length": len(text),
            "sha256": None if secret else sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            "secret": secret,
            "in_signature": name in shows,
            "declared": tool is None or name in tool.declared or name in facts,
        }


def grant(g: Grant) -> dict[str, Any]:
    return asdict(g)


def rule(r: Rule) -> dict[str, Any]:
    return {
        "rule": r.label(),
        "action": r.action,
        "where": r.where,
        "description": r.description,
        "default": r.default,
    }


def traits(t: Tool) -> list[str]:
    return [name for name, held in asdict(t.traits).items() if held]


def tool_row(t: Tool) -> dict[str, Any]:
    """A tool in a line; `bytes` is the size of its definition."""
    return {
        "id": t.id,
        "name": t.wire,
        "namespace": t.namespace,
        "source": t.source,
        "description": t.description[:200],
        "available": t.available,
        "traits": traits(t),
        "bytes": len(msgspec.json.encode(t.input_schema)) + len(t.description) + len(t.wire),
    }


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


def became(answered: Approval, outcome: Outcome | None) -> dict[str, str]:
    """What became of the call of an answered question, for the person who answered it."""
    ended = outcome.error if outcome is not None and outcome.state.final else None
    return {
        "state": str(outcome.state if outcome is not None else answered.state),
        "text": fate(answered, outcome),
        **({"code": ended.code} if ended is not None else {}),
    }

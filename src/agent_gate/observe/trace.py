"""Calls as spans: names and attributes by the OpenTelemetry conventions for MCP and generative AI. Pure.

A call's own id is its trace id unless the caller brought a `traceparent`, and the span ids follow from it. So the
record, the logs and the traces join without anything kept in between, also across a restart.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from agent_gate.core.approval import Approval
from agent_gate.core.call import Call, Case, Decision, Outcome, State
from agent_gate.errors import GatewayError

TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
Part = Literal["call", "policy", "approval", "source"]
PARTS: dict[Part, int] = {"call": 0, "policy": 1, "approval": 2, "source": 3}
SpanKind = Literal["server", "client", "internal"]
Value = str | int | float | bool


class Trace(NamedTuple):
    """Which trace a call belongs to, and the span above it there."""

    trace_id: str
    parent: str | None
    flags: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One finished span; times are seconds since the epoch."""

    trace_id: str
    span_id: str
    parent: str | None
    name: str
    kind: SpanKind
    start: float
    end: float
    attributes: Mapping[str, Value]
    error: str | None = None


def span_id(call_id: str, part: Part) -> str:
    """The id of one of a call's spans: its random half, told apart in the last bits."""
    return f"{int(call_id[16:], 16) ^ PARTS[part]:016x}"


def trace_of(call_id: str, traceparent: str | None) -> Trace:
    """Where a call stands; a header that breaks the format is as good as none."""
    found = TRACEPARENT.fullmatch(traceparent) if traceparent else None
    if found is None:
        return Trace(call_id, None, "01")
    parent = None if found[2] == span_id(call_id, "call") else found[2]
    return Trace(found[1], parent, found[3])


def root(call_id: str) -> str:
    """The `traceparent` of a call that starts its own trace."""
    return f"00-{call_id}-{span_id(call_id, 'call')}-01"


def well_formed(traceparent: str) -> bool:
    return TRACEPARENT.fullmatch(traceparent) is not None


def outgoing(call: Call) -> str | None:
    """The `traceparent` that a source passes on; None where nobody traces this call."""
    if call.trace is None or not well_formed(call.trace):
        return None
    trace = trace_of(call.id, call.trace)
    return f"00-{trace.trace_id}-{span_id(call.id, 'source')}-{trace.flags}"


def decision_attributes(decision: Decision) -> dict[str, Value]:
    found = {
        "agent_gate.decision": decision.effect,
        "agent_gate.rule": decision.rule,
        "agent_gate.rule.where": decision.where,
        "agent_gate.grant": decision.grant or "",
    }
    return {name: value for name, value in found.items() if value}


def call_attributes(call: Call, tool: str) -> dict[str, Value]:
    found: dict[str, Value] = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": call.id,
        "agent_gate.agent": call.caller.name,
        "agent_gate.surface": call.surface,
    }
    if isinstance(call.client_id, str | int):
        found["jsonrpc.request.id"] = str(call.client_id)
    if call.session:
        found["mcp.session.id"] = call.session
    if call.conversation is not None and call.conversation.protocol:
        found["mcp.protocol.version"] = call.conversation.protocol
    return found


def error_type(outcome: Outcome) -> str | None:
    if outcome.result is not None and outcome.result.is_error:
        return "tool_error"
    return outcome.error.code if outcome.error is not None else None


class Tracer:
    """Turns what happened to a call into spans and hands them on; `close` sends those that are left."""

    def __init__(self, export: Callable[[Span], None], close: Callable[[], None] = lambda: None) -> None:
        self._export, self.close = export, close

    def performed(self, case: Case, outcome: Outcome, marks: Mapping[str, float], ended: float) -> None:
        for span in performed(case, outcome, marks, ended):
            self._export(span)

    def answered(self, approval: Approval) -> None:
        """Hear of an approval; one that still waits has no end to tell of."""
        if approval.state is State.PENDING:
            return
        for span in answered(approval):
            self._export(span)

    def refused(
        self, call: Call, tool: str, decision: Decision | None, error: GatewayError, at: float
    ) -> None:
        trace = trace_of(call.id, call.trace)
        attributes = call_attributes(call, tool) | (decision_attributes(decision) if decision else {})
        self._export(
            make(trace, call.id, "call", f"tools/call {tool}", "server", at, at, attributes, error.code)
        )


def make(
    trace: Trace,
    call_id: str,
    part: Part,
    name: str,
    kind: SpanKind,
    start: float,
    end: float,
    attributes: Mapping[str, Value],
    error: str | None = None,
) -> Span:
    return Span(
        trace_id=trace.trace_id,
        span_id=span_id(call_id, part),
        parent=trace.parent if part == "call" else span_id(call_id, "call"),
        name=name,
        kind=kind,
        start=start,
        end=max(start, end),
        attributes=dict(attributes) | ({"error.type": error} if error else {}),
        error=error,
    )


def performed(case: Case, outcome: Outcome, marks: Mapping[str, float], ended: float) -> Iterator[Span]:
    """The spans of a call that reached its source: itself, the decision, and the source's part."""
    call, tool = case.call, case.tool
    trace, failed = trace_of(call.id, call.trace), error_type(outcome)
    received = marks.get("received", ended)
    dispatched, replied = marks.get("dispatched", received), marks.get("replied", ended)
    shared = decision_attributes(case.decision)
    yield make(
        trace,
        call.id,
        "call",
        f"tools/call {tool.wire}",
        "server",
        received,
        ended,
        call_attributes(call, tool.wire) | shared | {"agent_gate.state": str(outcome.state)},
        failed,
    )
    decided = dispatched if case.decision.effect == "allow" else received
    yield make(trace, call.id, "policy", "policy", "internal", received, decided, shared)
    yield make(
        trace,
        call.id,
        "source",
        f"tools/call {tool.upstream}",
        "client",
        dispatched,
        replied,
        {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": tool.upstream,
            "agent_gate.source": tool.source,
        },
        failed,
    )


def answered(approval: Approval) -> Iterator[Span]:
    """How long a person was waited for; and the whole call, where it ended there."""
    trace, start = trace_of(approval.call_id, approval.call.trace), approval.asked.at
    ended = approval.answered.at or start
    said: dict[str, Value] = {
        "agent_gate.approval.status": str(approval.state),
        "agent_gate.approval.approver": approval.answered.by,
        "agent_gate.approval.channel": approval.answered.channel,
        "agent_gate.approval.wait": round(ended - start, 3),
    }
    yield make(trace, approval.call_id, "approval", "approval", "internal", start, ended, said)
    if approval.state is not State.APPROVED:
        whole = {
            "mcp.method.name": "tools/call",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": approval.asked.wire,
            "gen_ai.tool.call.id": approval.call_id,
            "agent_gate.agent": approval.caller.name,
            "agent_gate.surface": approval.call.surface,
            "agent_gate.state": str(approval.state),
            **decision_attributes(approval.decision),
        }
        why = "APPROVAL_TIMEOUT" if approval.state is State.EXPIRED else "APPROVAL_DENIED"
        name = f"tools/call {approval.asked.wire}"
        yield make(trace, approval.call_id, "call", name, "server", start, ended, whole, why)

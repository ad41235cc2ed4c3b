"""Refusals go on the record too, not awaited; a flood of them is folded into one row with a count."""

import logging
from dataclasses import dataclass

from agent_gate.calls import entries
from agent_gate.calls.admit import Draft
from agent_gate.core.call import Outcome, State
from agent_gate.core.ports import Clock
from agent_gate.errors import Forbidden, GatewayError, RateLimited
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.redact import Redactor
from agent_gate.observe.trace import Tracer
from agent_gate.store.statement import Store

log = logging.getLogger("agent_gate.calls")


@dataclass(slots=True)
class Flood:
    draft: Draft
    error: GatewayError
    count: int


class Refusals:
    """Writes one row per refusal, and one per caller and moment for calls over the rate limit."""

    def __init__(
        self, store: Store, clock: Clock, metrics: Metrics, redactor: Redactor, tracer: Tracer | None = None
    ) -> None:
        self._store, self._clock, self._metrics, self._redactor = store, clock, metrics, redactor
        self._tracer = tracer
        self._floods: dict[str, Flood] = {}

    def refuse(self, draft: Draft, error: GatewayError) -> Outcome:
        self._metrics.refusals.add(draft.call.surface, error.code)
        if isinstance(error, Forbidden):
            call = draft.call
            said = {"agent": call.caller.name, "tool": call.tool, "call": call.id, "why": error.message}
            log.info("A call was denied", extra=said)
        if self._tracer is not None:
            self._trace(self._tracer, draft, error)
        if isinstance(error, RateLimited):
            self._fold(draft, error)
        elif self._store.healthy:
            self._store.post(entries.refused(draft, error, self._clock.now(), self._redactor))
        return Outcome(call_id=draft.call.id, state=State.REFUSED, error=error)

    def _trace(self, tracer: Tracer, draft: Draft, error: GatewayError) -> None:
        name = tool.wire if (tool := draft.known_tool) is not None else "unknown"
        tracer.refused(draft.call, name, draft.known_decision, error, self._clock.now())

    def _fold(self, draft: Draft, error: GatewayError) -> None:
        flood = self._floods.setdefault(draft.call.caller.name, Flood(draft, error, 0))
        flood.count += 1

    async def flush(self) -> None:
        """Write down the floods of the last while."""
        floods, self._floods = self._floods, {}
        for flood in floods.values():
            self._store.post(
                entries.refused(flood.draft, flood.error, self._clock.now(), self._redactor, flood.count)
            )

"""The pipeline of this gateway, and where it leaves what is too large for its callers."""

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from agent_gate.access.tokens import Tokens
from agent_gate.app.ways_in import LargeResults
from agent_gate.calls import Calls
from agent_gate.calls.pipeline import make_calls
from agent_gate.calls.shaping import Shaper
from agent_gate.calls.sweeper import HOUR, Sweeper
from agent_gate.discovery.tokens import fits
from agent_gate.observe.tracing import tracer_to
from agent_gate.results.artifacts import Artifacts
from agent_gate.results.readers import Readers

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway


def make_pipeline(
    gateway: "Gateway", life: AsyncExitStack, sweeper: Sweeper, tokens: Tokens
) -> tuple[Calls, LargeResults]:
    """`life` closes it."""
    settings, kept, supervisor = gateway.settings, gateway.kept, gateway.supervisor
    tracer = tracer_to(settings.telemetry.otlp_endpoint, settings.gateway.id, gateway.redactor)
    artifacts = Artifacts(kept.store, gateway.clock, settings.results.retention_days * 86_400)
    readers = Readers(fits)
    calls = make_calls(
        store=kept.store,
        clock=gateway.clock,
        shelf=supervisor.shelf,
        inbox=kept.inbox,
        grants=kept.grants,
        sources=supervisor.keepers,
        witnesses=supervisor.witnesses,
        sweeper=sweeper,
        in_force=gateway.in_force,
        shaper=Shaper(artifacts, fits, gateway.in_force, readers),
        tracer=tracer,
        metrics=gateway.metrics,
        redactor=gateway.redactor,
        caller_now=tokens.caller,
    )
    sweeper.run_every(HOUR, artifacts.sweep)
    life.push_async_callback(calls.close)
    if tracer is not None:
        life.push_async_callback(asyncio.to_thread, tracer.close)
    life.callback(readers.close)
    return calls, LargeResults(artifacts, readers)

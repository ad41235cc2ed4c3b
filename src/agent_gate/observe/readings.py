"""Numbers that are kept elsewhere and read when somebody asks for the metrics."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from agent_gate.core.source_state import SourceState, Status
from agent_gate.observe.metrics import Gauge, Labels, Metrics, Tally


class SourcesRead(Protocol):
    """Whoever keeps the sources connected."""

    def states(self) -> Sequence[SourceState]: ...
    def restarts(self) -> Mapping[str, int]: ...


class HeadsRead(Protocol):
    """Whoever reads the heads of HTTP messages."""

    repeated: int
    parsed: int


def read_heads(metrics: Metrics, requests: Callable[[], HeadsRead], replies: HeadsRead) -> None:
    def heads() -> dict[Labels, float]:
        listener = requests()
        return {
            ("requests", "repeated"): listener.repeated,
            ("requests", "parsed"): listener.parsed,
            ("replies", "repeated"): replies.repeated,
            ("replies", "parsed"): replies.parsed,
        }

    metrics.add(
        Tally(
            "agent_gate_http_heads_total",
            "Requests of agents and replies of sources, by whether their head had to be parsed.",
            heads,
            ("of", "path"),
        )
    )


def read_sources(metrics: Metrics, sources: SourcesRead) -> None:
    def up() -> dict[Labels, float]:
        return {(state.key,): float(state.status is Status.READY) for state in sources.states()}

    def restarts() -> dict[Labels, float]:
        return {(key,): float(count) for key, count in sources.restarts().items()}

    metrics.add(Tally("agent_gate_source_restarts_total", "Reconnections by source.", restarts, ("source",)))
    metrics.add(Gauge("agent_gate_source_up", "Whether a source is connected.", up, ("source",)))


def read_questions(metrics: Metrics, pending: Callable[[], Sequence[object]]) -> None:
    def waiting() -> dict[Labels, float]:
        return {(): len(pending())}

    metrics.add(Gauge("agent_gate_approvals_pending", "Questions that wait for a person.", waiting))


def read_load(metrics: Metrics, connections: Callable[[], int], sessions: Callable[[], int]) -> None:
    """What is open right now: what should go down again when agents leave."""

    def number(read: Callable[[], int]) -> Callable[[], dict[Labels, float]]:
        return lambda: {(): read()}

    for name, help_text, read in (
        ("agent_gate_connections", "Connections that are open on the public listener.", connections),
        ("agent_gate_mcp_sessions", "Sessions of MCP clients that were opened by a handshake.", sessions),
        ("agent_gate_tasks", "Tasks of the event loop.", lambda: len(asyncio.all_tasks())),
    ):
        metrics.add(Gauge(name, help_text, number(read)))

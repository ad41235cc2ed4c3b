"""Counters, gauges and histograms in Prometheus' text form; labels are bounded, recording is a dict update."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
WAITS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 86_400.0)
MOST_SERIES = 2_000
OTHER = "other"
TOOL_CALLS = {"mcp_method_name": "tools/call"}

Labels = tuple[str, ...]


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def label_text(names: Iterable[str], values: Labels) -> str:
    pairs = ",".join(f'{name}="{escape(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


class Counter:
    """A number that only grows, per combination of labels; beyond the cap everything counts as `other`.

    Each number is the only item of its cell, which whoever counts often can hold on to.
    """

    kind = "counter"

    def __init__(self, name: str, help_text: str, labels: Iterable[str] = ()) -> None:
        self.name, self.help, self.labels = name, help_text, tuple(labels)
        self.cells: dict[Labels, list[float]] = {}

    @property
    def values(self) -> dict[Labels, float]:
        return {labels: number for labels, (number,) in self.cells.items()}

    def cell(self, *labels: str) -> list[float]:
        if labels not in self.cells and len(self.cells) >= MOST_SERIES:
            labels = (OTHER,) * len(self.labels)
        return self.cells.setdefault(labels, [0])

    def add(self, *labels: str, by: float = 1) -> None:
        cell = self.cells.get(labels)
        if cell is None:
            cell = self.cell(*labels)
        cell[0] += by

    def lines(self) -> Iterable[str]:
        for values, number in sorted(self.values.items()):
            yield f"{self.name}{label_text(self.labels, values)} {number:g}"


class Gauge(Counter):
    """A number read when it is asked for."""

    kind = "gauge"

    def __init__(
        self,
        name: str,
        help_text: str,
        read: Callable[[], Mapping[Labels, float]],
        labels: Iterable[str] = (),
    ) -> None:
        super().__init__(name, help_text, labels)
        self.read = read

    def lines(self) -> Iterable[str]:
        for values, number in sorted(self.read().items()):
            yield f"{self.name}{label_text(self.labels, values)} {number:g}"


class Tally(Gauge):
    """A number that only grows and is kept elsewhere; read when it is asked for."""

    kind = "counter"


class Histogram:
    """Durations in fixed buckets. `fixed` are labels whose value never changes."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        help_text: str,
        labels: Iterable[str] = (),
        buckets: tuple[float, ...] = BUCKETS,
        fixed: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.help, self.labels, self.buckets = name, help_text, tuple(labels), buckets
        self.fixed = fixed or {}
        self.values: dict[Labels, list[float]] = {}

    def row(self, *labels: str) -> list[float]:
        """The numbers of these labels, one per bucket and the sum."""
        if labels not in self.values and len(self.values) >= MOST_SERIES:
            labels = (OTHER,) * len(self.labels)
        return self.values.setdefault(labels, [0.0] * (len(self.buckets) + 2))

    def observe(self, seconds: float, *labels: str) -> None:
        row = self.row(*labels)
        row[bisect_left(self.buckets, seconds)] += 1
        row[-1] += seconds

    def lines(self) -> Iterable[str]:
        names = (*self.fixed, *self.labels)
        for values, row in sorted(self.values.items()):
            total, whole = 0.0, (*self.fixed.values(), *values)
            for bound, number in zip((*map(str, self.buckets), "+Inf"), row, strict=False):
                total += number
                yield f"{self.name}_bucket{label_text((*names, 'le'), (*whole, bound))} {total:g}"
            yield f"{self.name}_sum{label_text(names, whole)} {row[-1]:g}"
            yield f"{self.name}_count{label_text(names, whole)} {total:g}"


class Meter:
    """Counts all calls of one tool that end alike."""

    __slots__ = ("_at_source", "_calls", "_result_bytes", "_seconds")

    def __init__(
        self, calls: list[float], seconds: list[float], at_source: list[float], result_bytes: list[float]
    ) -> None:
        self._calls, self._seconds = calls, seconds
        self._at_source, self._result_bytes = at_source, result_bytes

    def count(self, seconds: float, at_source: float | None, result_bytes: int) -> None:
        """One more call, which took `seconds` in all; `at_source` is None where its source was not reached."""
        self._calls[0] += 1
        self._seconds[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[-1] += seconds
        if at_source is not None:
            self._at_source[bisect_left(BUCKETS, at_source)] += 1
            self._at_source[-1] += at_source
        self._result_bytes[0] += result_bytes


Series = TypeVar("Series", Counter, Gauge, Histogram)


class Metrics:
    """Every series of the program, by name, so that a dashboard can be checked against it."""

    def __init__(self) -> None:
        self.series: dict[str, Counter | Histogram] = {}
        self.calls = self.add(
            Counter(
                "agent_gate_calls_total",
                "Calls by outcome.",
                ("source", "tool", "surface", "decision", "state"),
            )
        )
        self.decisions = self.add(
            Counter("agent_gate_policy_decisions_total", "Decisions by rule.", ("effect", "rule"))
        )
        self.refusals = self.add(
            Counter("agent_gate_refusals_total", "Calls refused before they ran.", ("surface", "code"))
        )
        self.result_bytes = self.add(
            Counter("agent_gate_result_bytes_total", "Bytes of results by source.", ("source",))
        )
        self.tokens_saved = self.add(
            Counter(
                "agent_gate_tokens_saved_total",
                "Tokens, at four bytes each, that results were shortened by.",
                ("source",),
            )
        )
        self.server = self.add(
            Histogram(
                "mcp_server_operation_duration_seconds",
                "Calls as the agent sees them.",
                ("surface", "gen_ai_tool_name"),
                fixed=TOOL_CALLS,
            )
        )
        self.client = self.add(
            Histogram(
                "mcp_client_operation_duration_seconds",
                "Calls as the source sees them.",
                ("source",),
                fixed=TOOL_CALLS,
            )
        )
        self.waits = self.add(
            Histogram(
                "agent_gate_approval_wait_seconds",
                "How long people take to answer.",
                ("channel", "verdict"),
                WAITS,
            )
        )
        self.deliveries = self.add(
            Counter("agent_gate_deliveries_total", "Messages to people by channel.", ("channel", "result"))
        )
        self.answers_refused = self.add(
            Counter("agent_gate_answers_refused_total", "Answers that did not count.", ("channel", "why"))
        )

    def add(self, series: Series) -> Series:
        self.series[series.name] = series
        return series

    def meter(self, source: str, tool: str, surface: str, decision: str, state: str) -> Meter:
        return Meter(
            self.calls.cell(source, tool, surface, decision, state),
            self.server.row(surface, tool),
            self.client.row(source),
            self.result_bytes.cell(source),
        )

    def text(self) -> str:
        out: list[str] = []
        for series in self.series.values():
            out += [
                f"# HELP {series.name} {series.help}",
                f"# TYPE {series.name} {series.kind}",
                *series.lines(),
            ]
        return "\n".join(out) + "\n"

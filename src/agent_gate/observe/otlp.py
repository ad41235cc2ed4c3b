"""Spans to an OpenTelemetry collector over HTTP. Imported only where an endpoint is configured (extra `otel`)."""

import logging

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from agent_gate import __version__
from agent_gate.observe.redact import Redactor
from agent_gate.observe.trace import Span

KINDS = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT, "internal": SpanKind.INTERNAL}
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
PATH = "/v1/traces"
SECONDS = 2.0


def url_of(endpoint: str) -> str:
    return endpoint if endpoint.endswith(PATH) else endpoint.rstrip("/") + PATH


class Exporter:
    """Sends spans in batches from a thread of its own; a collector that is away costs the calls nothing."""

    def __init__(self, endpoint: str, gateway: str, redactor: Redactor) -> None:
        logging.getLogger("opentelemetry").handlers = logging.getLogger("agent_gate").handlers
        logging.getLogger("opentelemetry").propagate = False
        session = requests.Session()
        session.trust_env = False
        sender = OTLPSpanExporter(endpoint=url_of(endpoint), session=session, timeout=SECONDS)
        self._processor = BatchSpanProcessor(sender)
        names = {"service.name": "agent-gate", "service.version": __version__, "service.instance.id": gateway}
        self._resource = Resource(names)
        self._scope = InstrumentationScope("agent_gate", __version__)
        self._redactor = redactor

    def export(self, span: Span) -> None:
        attributes = {
            name: self._redactor.text(value) if isinstance(value, str) else value
            for name, value in span.attributes.items()
        }
        self._processor.on_end(
            ReadableSpan(
                name=self._redactor.text(span.name),
                context=context(span.trace_id, span.span_id, remote=False),
                parent=context(span.trace_id, span.parent, remote=True) if span.parent else None,
                resource=self._resource,
                attributes=attributes,
                kind=KINDS[span.kind],
                status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
                start_time=int(span.start * 1e9),
                end_time=int(span.end * 1e9),
                instrumentation_scope=self._scope,
            )
        )

    def close(self) -> None:
        """Send what is left, and stop."""
        self._processor.shutdown()  # type: ignore[no-untyped-call]


def context(trace_id: str, span_id: str, *, remote: bool) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), remote, SAMPLED)

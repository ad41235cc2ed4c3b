"""Where spans go; nowhere, and nothing is even imported, unless an endpoint is configured."""

from agent_gate.errors import ConfigError
from agent_gate.observe.redact import Redactor
from agent_gate.observe.trace import Tracer


def tracer_to(endpoint: str | None, gateway: str, redactor: Redactor) -> Tracer | None:
    if endpoint is None:
        return None
    try:
        from agent_gate.observe.otlp import Exporter
    except ImportError:
        raise ConfigError("telemetry.otlp_endpoint needs more: pip install 'agent-gate[otel]'") from None
    exporter = Exporter(endpoint, gateway, redactor)
    return Tracer(exporter.export, exporter.close)

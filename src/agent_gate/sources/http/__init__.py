"""HTTP APIs declared in YAML: one source per service, requests put together from templates."""

from agent_gate.sources.http.source import SOURCE, HttpSource

__all__ = ["SOURCE", "HttpSource"]

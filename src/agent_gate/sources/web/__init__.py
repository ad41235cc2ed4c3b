"""The web without a browser: readable pages, search and weather, each request checked before it leaves."""

from agent_gate.sources.web.kind import SOURCE

__all__ = ["SOURCE"]

"""Services answered by a Python class: the way out for protocols that are not HTTP."""

from agent_gate.sources.plugin.handler import ServiceHandler
from agent_gate.sources.plugin.source import SOURCE, PluginSource

__all__ = ["SOURCE", "PluginSource", "ServiceHandler"]

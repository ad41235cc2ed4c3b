"""agent-gate: the gate between AI agents and everything they may touch.

The public names are loaded on first use, so that `import agent_gate` costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Client": "agent_gate.client",
    "SyncClient": "agent_gate.client",
    "GatewayError": "agent_gate.errors",
    "ConfigError": "agent_gate.errors",
    "CatalogError": "agent_gate.errors",
    "HTTPServiceError": "agent_gate.errors",
    "ServiceHandler": "agent_gate.sources.plugin",
    "ServiceConfig": "agent_gate.config.services.settings",
    "ToolDefinition": "agent_gate.config.services.settings",
    "parse_tool_id": "agent_gate.core.ids",
    "format_tool_id": "agent_gate.core.ids",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'agent_gate' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

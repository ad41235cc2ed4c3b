"""The WebSocket surface: JSON-RPC for agents that keep one connection open."""

from agent_gate.surfaces.websocket.surface import AgentLimits, WebSocketSurface
from agent_gate.surfaces.websocket.undelivered import Undelivered

__all__ = ["AgentLimits", "Undelivered", "WebSocketSurface"]

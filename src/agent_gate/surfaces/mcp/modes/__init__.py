"""Other ways to show tools than the whole catalog."""

from agent_gate.surfaces.mcp.modes.mode import Held, Reply, ToolMode, Wait

__all__ = ["Held", "Reply", "ToolMode", "Wait"]

"""Other ways to show tools than the whole catalog."""

from agent_gate.surfaces.mcp.modes.mode import HoldRequest, ModeReply, ToolMode, WaitFor

__all__ = ["HoldRequest", "ModeReply", "ToolMode", "WaitFor"]

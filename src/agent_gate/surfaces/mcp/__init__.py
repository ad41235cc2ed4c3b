"""MCP over HTTP and stdio: raw JSON in, `Calls.run`, raw JSON out, for every revision of the protocol."""

from agent_gate.surfaces.mcp.lines import Lines, open_standard_streams
from agent_gate.surfaces.mcp.modes import ModeReply, ToolMode
from agent_gate.surfaces.mcp.stdio import StdioServer
from agent_gate.surfaces.mcp.surface import McpSurface
from agent_gate.surfaces.mcp.visit import Visit

__all__ = ["Lines", "McpSurface", "ModeReply", "StdioServer", "ToolMode", "Visit", "open_standard_streams"]

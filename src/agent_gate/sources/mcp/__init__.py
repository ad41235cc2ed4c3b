"""The `mcp` source: a client of any MCP server, written on raw JSON.

source      lists, calls and forwards
calling/    the four combinations of caller's and server's revision; failures become the gateway's errors
lists/      tools, resources and prompts as definitions; hears changes, notices when the server is gone
sessions/   which session serves which caller, and what the server speaks
wire/       `Order`, the one object that travels; the transports
process/    the server's process and its guard
"""

from agent_gate.sources.mcp.kind import SOURCE
from agent_gate.sources.mcp.source import McpSource

__all__ = ["SOURCE", "McpSource"]

"""The `mcp` source: a client of any MCP server, written on raw JSON.

source      lists, calls and forwards; failures become the gateway's errors
watcher     hears changes, lists again, notices when the server is gone
bridge      the four combinations of caller's and server's era; `parking` holds calls that wait
connections which session serves which caller; `dial` opens one, `eras` finds out what the server speaks
session     one met server over a link
link        what a transport offers: `stdio`, `http`, `sse`
wire        JSON-RPC
"""

from agent_gate.sources.mcp.kind import SOURCE
from agent_gate.sources.mcp.source import McpSource

__all__ = ["SOURCE", "McpSource"]

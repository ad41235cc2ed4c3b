"""Tool hosts in Python: functions become tools that a paired gateway calls over mTLS, or over a Unix socket.

    from agent_gate.hosts import Host

    host = Host("greeter")

    @host.tool(idempotent=True, side_effects=False)
    def greet(name: str) -> str:
        "Greet somebody by name"
        return f"Hello, {name}"

`agent-gate host run module:host` serves it.
"""

from agent_gate.hosts.host import Host
from agent_gate.hosts.tools import Refused, current_context, log_line
from agent_gate.peers.toolwire import ToolCallContext

__all__ = ["Host", "Refused", "ToolCallContext", "current_context", "log_line"]

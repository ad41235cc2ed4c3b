"""A tool host in ten lines: agent-gate host run greeter.py:host --gateway-key KEY."""

from agent_gate.hosts import Host

host = Host("greeter")


@host.tool(idempotent=True, side_effects=False)
def greet(name: str, loudly: bool = False) -> str:
    """Greet somebody by name"""
    return f"HELLO, {name.upper()}!" if loudly else f"Hello, {name}"

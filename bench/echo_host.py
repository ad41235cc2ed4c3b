"""A paired tool host with one tool, for the price of mTLS."""

from agent_gate.hosts import Host

host = Host("echo")


@host.tool("echo", idempotent=True, side_effects=False)
async def echo(text: str) -> str:
    """Returns the text"""
    return text

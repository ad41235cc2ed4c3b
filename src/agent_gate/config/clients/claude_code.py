"""Claude Code: `mcpServers` in `~/.claude.json`, also per project inside it, and in a project's `.mcp.json`."""

from agent_gate.config.clients.forms import standard
from agent_gate.config.clients.jsonc import Jsonc
from agent_gate.config.clients.model import Client, ClientFile, Entry, Gateway, Place, stdio

HEADER = "Authorization: Bearer ${AGENT_TOKEN}"


def files(place: Place) -> list[ClientFile]:
    own = place.home / ".claude.json"
    return [
        ClientFile("claude-code", own, "user", ("mcpServers",)),
        ClientFile("claude-code", own, "project", ("projects", str(place.cwd), "mcpServers")),
        ClientFile("claude-code", place.cwd / ".mcp.json", "project", ("mcpServers",)),
    ]


def write(gateway: Gateway) -> Entry:
    if gateway.needs_bridge:
        return {"type": "stdio", **stdio(gateway)}
    return {"type": "http", "url": gateway.endpoint, "headers": {"Authorization": "Bearer ${AGENT_TOKEN}"}}


def command(gateway: Gateway) -> list[str]:
    if gateway.needs_bridge:
        return ["claude", "mcp", "add", "agent-gate", "--", gateway.command, *gateway.bridge]
    return ["claude", "mcp", "add", "--transport", "http", "agent-gate", gateway.endpoint, "--header", HEADER]


CLIENT = Client(
    name="claude-code",
    title="Claude Code",
    files=files,
    syntax=Jsonc(),
    read=standard,
    write=write,
    command=command,
)

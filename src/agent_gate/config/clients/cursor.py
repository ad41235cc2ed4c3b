"""Cursor: `mcpServers` in `~/.cursor/mcp.json` and a project's `.cursor/mcp.json`, with `${env:NAME}`."""

from agent_gate.config.clients.forms import standard
from agent_gate.config.clients.model import ClientEntry, ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.jsonedit import Jsonc


def files(place: Surroundings) -> list[ClientFile]:
    return [
        ClientFile("cursor", place.home / ".cursor" / "mcp.json", "user", ("mcpServers",)),
        ClientFile("cursor", place.cwd / ".cursor" / "mcp.json", "project", ("mcpServers",)),
    ]


def write(gateway: GatewayEntry) -> ClientEntry:
    if gateway.needs_bridge:
        return gateway.as_program()
    return {"url": gateway.endpoint, "headers": {"Authorization": "Bearer ${env:AGENT_TOKEN}"}}


CLIENT = ClientProgram(name="cursor", title="Cursor", files=files, syntax=Jsonc(), read=standard, write=write)

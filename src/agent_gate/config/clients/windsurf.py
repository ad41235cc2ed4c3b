"""Windsurf: `mcpServers` in `~/.codeium/windsurf/mcp_config.json`, where an address is `serverUrl`."""

from agent_gate.config.clients.forms import standard
from agent_gate.config.clients.model import ClientEntry, ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.jsonedit import Jsonc


def files(place: Surroundings) -> list[ClientFile]:
    path = place.home / ".codeium" / "windsurf" / "mcp_config.json"
    return [ClientFile("windsurf", path, "user", ("mcpServers",))]


def write(gateway: GatewayEntry) -> ClientEntry:
    if gateway.needs_bridge:
        return gateway.as_program()
    return {"serverUrl": gateway.endpoint, "headers": {"Authorization": "Bearer ${env:AGENT_TOKEN}"}}


CLIENT = ClientProgram(
    name="windsurf", title="Windsurf", files=files, syntax=Jsonc(), read=standard, write=write
)

"""Cline: `mcpServers` in the settings it keeps inside VS Code; it passes no environment on and expands nothing."""

from agent_gate.config.clients.forms import standard
from agent_gate.config.clients.model import ClientEntry, ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.jsonedit import Jsonc

NAME = "cline_mcp_settings.json"


def files(place: Surroundings) -> list[ClientFile]:
    extension = place.applications / "Code" / "User" / "globalStorage" / "saoudrizwan.claude-dev"
    return [
        ClientFile("cline", extension / "settings" / NAME, "user", ("mcpServers",)),
        ClientFile("cline", place.home / ".cline" / "data" / "settings" / NAME, "user", ("mcpServers",)),
    ]


def write(gateway: GatewayEntry) -> ClientEntry:
    return {**gateway.as_program(), "disabled": False, "autoApprove": []}


CLIENT = ClientProgram(
    name="cline", title="Cline", files=files, syntax=Jsonc(), read=standard, write=write, expands=False
)

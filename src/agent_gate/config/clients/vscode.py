"""VS Code: `servers` in the user's `mcp.json` and a project's `.vscode/mcp.json`, with `${input:id}`."""

from collections.abc import Mapping
from typing import Any

from agent_gate.config.clients.forms import INPUT, rewrite, standard
from agent_gate.config.clients.model import ClientEntry, ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.jsonedit import Jsonc
from agent_gate.config.files.variables import variable


def files(place: Surroundings) -> list[ClientFile]:
    user = place.applications / "Code" / "User" / "mcp.json"
    return [
        ClientFile("vscode", user, "user", ("servers",)),
        ClientFile("vscode", place.cwd / ".vscode" / "mcp.json", "project", ("servers",)),
    ]


def read(raw: Mapping[str, Any]) -> ClientEntry:
    """A value that VS Code asks for becomes a variable named after its question."""
    entry: ClientEntry = rewrite(standard(raw), INPUT, lambda found: f"${{{variable(found[1])}}}")
    return entry


def write(gateway: GatewayEntry) -> ClientEntry:
    if gateway.needs_bridge:
        return {"type": "stdio", **gateway.as_program()}
    return {
        "type": "http",
        "url": gateway.endpoint,
        "headers": {"Authorization": "Bearer ${env:AGENT_TOKEN}"},
    }


CLIENT = ClientProgram(name="vscode", title="VS Code", files=files, syntax=Jsonc(), read=read, write=write)

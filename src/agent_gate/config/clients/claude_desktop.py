"""Claude Desktop: `mcpServers` in `claude_desktop_config.json`; it starts programs and expands no variables."""

from agent_gate.config.clients.forms import standard
from agent_gate.config.clients.model import ClientFile, ClientProgram, GatewayEntry, Surroundings
from agent_gate.config.files.jsonedit import Jsonc


def files(place: Surroundings) -> list[ClientFile]:
    path = place.applications / "Claude" / "claude_desktop_config.json"
    return [ClientFile("claude-desktop", path, "user", ("mcpServers",))]


CLIENT = ClientProgram(
    name="claude-desktop",
    title="Claude Desktop",
    files=files,
    syntax=Jsonc(),
    read=standard,
    write=GatewayEntry.as_program,
    expands=False,
    note="Restart Claude Desktop afterwards.",
)

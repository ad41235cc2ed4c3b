"""Claude Code: `mcpServers` in `~/.claude.json`, also per project inside it, and in a project's `.mcp.json`."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from agent_gate.config.clients.forms import standard
from agent_gate.config.clients.model import (
    PROJECTS,
    ClientEntry,
    ClientFile,
    ClientProgram,
    GatewayEntry,
    Surroundings,
)
from agent_gate.config.files.jsonedit import Jsonc
from agent_gate.errors import ConfigError

HEADER = "Authorization: Bearer ${AGENT_TOKEN}"


def files(place: Surroundings) -> list[ClientFile]:
    own = place.home / ".claude.json"
    return [
        ClientFile("claude-code", own, "user", ("mcpServers",)),
        *(
            ClientFile("claude-code", own, "project", (PROJECTS, path, "mcpServers"))
            for path in projects(own, place)
        ),
        ClientFile("claude-code", place.cwd / ".mcp.json", "project", ("mcpServers",)),
    ]


def projects(own: Path, place: Surroundings) -> list[str]:
    """The folders for which Claude Code keeps servers of their own; that of the current one first."""
    known: object = None
    with suppress(OSError, UnicodeDecodeError, ConfigError):
        known = Jsonc().read(own.read_text(encoding="utf-8"), str(own)).get(PROJECTS)
    others = [str(path) for path in known if path != str(place.cwd)] if isinstance(known, Mapping) else []
    return [str(place.cwd), *others]


def write(gateway: GatewayEntry) -> ClientEntry:
    if gateway.needs_bridge:
        return {"type": "stdio", **gateway.as_program()}
    return {"type": "http", "url": gateway.endpoint, "headers": {"Authorization": "Bearer ${AGENT_TOKEN}"}}


def command(gateway: GatewayEntry) -> list[str]:
    if gateway.needs_bridge:
        return ["claude", "mcp", "add", "agent-gate", "--", gateway.command, *gateway.bridge]
    return ["claude", "mcp", "add", "--transport", "http", "agent-gate", gateway.endpoint, "--header", HEADER]


CLIENT = ClientProgram(
    name="claude-code",
    title="Claude Code",
    files=files,
    syntax=Jsonc(),
    read=standard,
    write=write,
    command=command,
)

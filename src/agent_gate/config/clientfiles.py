"""The MCP servers in another client's file, whichever of the usual forms it has, into `ServerSettings`."""

from pathlib import Path

from agent_gate.config.decode import Reading
from agent_gate.config.jsonfile import read_json
from agent_gate.config.nodes import Node, entries
from agent_gate.config.serverfiles import read_servers
from agent_gate.config.servers import ServerSettings
from agent_gate.config.tomlfile import read_toml
from agent_gate.config.yamlfile import read_yaml
from agent_gate.errors import ConfigError

BLOCKS = ("mcpServers", "mcp_servers", "servers")


def read_client_file(
    path: Path, reading: Reading, *, strict_supply_chain: bool = False
) -> dict[str, ServerSettings]:
    """The servers of `mcpServers` (Claude, Cursor), `servers` (VS Code) or `[mcp_servers.x]` (Codex)."""
    name, block = server_block(read_any(path))
    if block is None:
        raise ConfigError(f"none of {', '.join(BLOCKS)} stands in it", where=str(path))
    filled = reading.variables.fill(block, name)
    return read_servers(filled, name, reading, lenient=True, strict_supply_chain=strict_supply_chain)


def read_any(path: Path) -> Node:
    """A file by the format that its name says."""
    readers = {".toml": read_toml, ".yaml": read_yaml, ".yml": read_yaml}
    return readers.get(path.suffix.lower(), read_json)(path)


def server_block(root: Node) -> tuple[str, Node | None]:
    for name in BLOCKS:
        block = root.get(name)
        if block is not None:
            return name, block
    for key, node in entries(root, "").items():
        if key == "mcp" and isinstance(node.value, dict):
            return server_block(node)
    return "", None

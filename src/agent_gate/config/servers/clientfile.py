"""The MCP servers in another client's file, in whichever client's form, into `ServerSettings`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_gate.config.clients import codex, opencode, vscode, zed
from agent_gate.config.clients.forms import standard
from agent_gate.config.clients.model import ClientEntry
from agent_gate.config.decode import Reading
from agent_gate.config.files.jsonfile import read_json
from agent_gate.config.files.nodes import Node, entries, join
from agent_gate.config.files.tomlfile import read_toml
from agent_gate.config.files.yamlfile import read_yaml
from agent_gate.config.servers.read import read_servers
from agent_gate.config.servers.settings import ServerSettings
from agent_gate.errors import ConfigError

BLOCKS = ("mcpServers", "mcp_servers", "servers", "context_servers")
Form = Callable[[Mapping[str, Any]], ClientEntry]
FORMS: dict[str, Form] = {
    "mcpServers": standard,
    "mcp_servers": codex.read,
    "servers": vscode.read,
    "context_servers": zed.read,
    "mcp": opencode.read,
}


def read_client_file(
    path: Path, reading: Reading, *, strict_supply_chain: bool = False
) -> dict[str, ServerSettings]:
    """The servers of the block by which a client's file is known."""
    name, block = server_block(reading.open(path, read_any))
    if block is None:
        raise ConfigError(f"none of {', '.join(FORMS)} stands in it", where=str(path))
    filled = reading.variables.fill(in_our_words(block, name, reading), name)
    return read_servers(filled, name, reading, lenient=True, strict_supply_chain=strict_supply_chain)


def servers_of(path: Path) -> dict[str, Any]:
    """The servers of a client's file as our own would have them, their variables as they stand."""
    name, block = server_block(read_any(path))
    if block is None:
        return {}
    told = {key: translated(node, FORMS[name]) for key, node in entries(block, name).items()}
    return {key: node.plain() for key, node in told.items() if node is not None}


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
            inner = server_block(node)
            return inner if inner[1] is not None else (key, node)
    return "", None


def in_our_words(block: Node, name: str, reading: Reading) -> Node:
    """The block with each server as our own file would have it; what is none, such as a client's own, is left out."""
    found: dict[str, Node] = {}
    for key, node in entries(block, name).items():
        server = translated(node, FORMS[name])
        if server is None:
            reading.warn(block.key_mark(key), join(name, key), "is no MCP server, ignored")
        else:
            found[key] = server
    return Node(found, block.mark, block.keys)


def translated(node: Node, form: Form) -> Node | None:
    """One server in our words, at the place where it stands. What its form has no use for stays as it is."""
    raw = node.plain()
    entry = form(raw) if isinstance(raw, dict) else {}
    if not entry or not isinstance(node.value, dict):
        return None
    used = {key for key in raw if form({k: v for k, v in raw.items() if k != key}) != entry}
    rest = {key: item for key, item in node.value.items() if key not in used and key not in entry}
    ours = {key: placed(value, node.get(key) or node) for key, value in entry.items()}
    return Node({**rest, **ours}, node.mark, node.keys)


def placed(value: Any, at: Node) -> Node:
    """A plain value as nodes: with the marks of `at` where that has the same shape, else at its place."""
    if isinstance(value, dict):
        return Node(
            {key: placed(item, at.get(key) or Node(None, at.mark)) for key, item in value.items()},
            at.mark,
            at.keys,
        )
    if isinstance(value, list):
        there = at.value if isinstance(at.value, list) and len(at.value) == len(value) else [at] * len(value)
        return Node([placed(item, one) for item, one in zip(value, there, strict=True)], at.mark)
    return Node(value, at.mark)

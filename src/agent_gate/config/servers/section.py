"""The MCP servers of config.yaml: `servers:`, a mapping or a file, and `mcpServers:` as clients have it."""

from collections.abc import Mapping
from itertools import permutations
from pathlib import Path

from agent_gate.config.decode import Reading, beside, convert, existing
from agent_gate.config.files.nodes import Mark, Node, entries, fail, join
from agent_gate.config.files.yamlfile import read_yaml
from agent_gate.config.kinds import Section
from agent_gate.config.load import shared_namespace
from agent_gate.config.servers.clientfile import read_client_file
from agent_gate.config.servers.read import read_servers
from agent_gate.config.servers.settings import ServerAuth, ServerSettings
from agent_gate.config.shape import InFile
from agent_gate.core.catalog import wire_part

YAML_SUFFIXES = (".yaml", ".yml")
MAPPING = {"type": "object", "additionalProperties": {"$ref": "#/$defs/ServerSettings"}}
PASTED = {"type": "object", "additionalProperties": {"type": "object"}}


def read_section(root: Node, reading: Reading) -> dict[str, ServerSettings]:
    strict = root.get("strict_supply_chain") or Node(False, root.mark)
    servers = all_servers(root, reading, strict=convert(strict, bool, "strict_supply_chain", reading))
    refuse_nested(servers)
    return servers


def all_servers(root: Node, reading: Reading, *, strict: bool) -> dict[str, ServerSettings]:
    """`servers:` (a mapping or a file) and `mcpServers:` together."""
    found: dict[str, ServerSettings] = {}
    own, pasted = root.get("servers"), root.get("mcpServers")
    if own is not None and isinstance(own.value, str):
        found.update(servers_file(own, reading, strict=strict))
    elif own is not None:
        found.update(read_servers(own, "servers", reading, lenient=False, strict_supply_chain=strict))
    if pasted is not None:
        pasted = unwrap(pasted)
        for key, server in read_servers(
            pasted, "mcpServers", reading, lenient=True, strict_supply_chain=strict
        ).items():
            if key in found:
                fail(pasted.key_mark(key), join("mcpServers", key), f"is also given at {found[key].where}")
            found[key] = server
    return found


def unwrap(pasted: Node) -> Node:
    """The servers of a client's whole file that was pasted below `mcpServers:`, without its other settings."""
    others = dict(entries(pasted, "mcpServers"))
    inner = next(filter(None, (others.pop(key, None) for key in ("mcpServers", "servers"))), None)
    if inner is None or is_server(inner) or any(map(is_server, others.values())):
        return pasted
    return inner


def is_server(node: Node) -> bool:
    return node.get("command") is not None or node.get("url") is not None


def servers_file(node: Node, reading: Reading, *, strict: bool) -> dict[str, ServerSettings]:
    file = existing(node.mark, beside(node.mark, Path(str(node.value))), "servers", reading)
    if file.suffix not in YAML_SUFFIXES:
        return read_client_file(file, reading, strict_supply_chain=strict)
    root = reading.variables.fill(reading.open(file, read_yaml))
    found: dict[str, ServerSettings] = {}
    for key in entries(root, ""):
        if key not in ("servers", "mcpServers"):
            fail(root.key_mark(key), key, 'unknown key, a server file has "servers" or "mcpServers"')
        block = root.get(key)
        if block is not None:
            lenient = key == "mcpServers"
            found.update(read_servers(block, key, reading, lenient=lenient, strict_supply_chain=strict))
    return found


def names_meet(key: str, other: str) -> bool:
    """Whether a tool of the server `key` could be named like one of the server `other`."""
    return f"{wire_part(key)}__".startswith(f"{wire_part(other)}__")


def refuse_nested(servers: Mapping[str, ServerSettings]) -> None:
    """Where one server's prefix begins with another's, a tool of one could pass for a tool of the other."""
    prefixes = [(key, one.where) for key, one in servers.items() if one.prefix]
    for (key, where), (other, first) in permutations(prefixes, 2):
        if names_meet(key, other) and shared_namespace(key) != shared_namespace(other):
            either = f"{wire_part(key)}__… could be a tool of either; rename one of them"
            fail(Mark(where), key, f'and "{other}" ({first}) have names that meet: {either}')


SERVERS = Section(
    "servers",
    read_section,
    {
        "servers": InFile(
            {"anyOf": [{"type": "string"}, MAPPING]},
            "MCP servers: a mapping, or a file that holds one; each key is a namespace.",
        ),
        "mcpServers": InFile(PASTED, "MCP servers as they stand in a client's file."),
        "strict_supply_chain": InFile(
            {"type": ["boolean", "string"], "default": False},
            "Refuse servers whose package or image has no version, instead of warning.",
        ),
    },
    (ServerSettings, ServerAuth),
)

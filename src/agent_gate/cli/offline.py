"""A configuration looked at without running it: its tools, as far as the files alone tell."""

from collections.abc import Iterable
from pathlib import Path

from agent_gate.config.definition import to_definition
from agent_gate.config.load import Loaded, load
from agent_gate.config.servers import ServerSettings
from agent_gate.core.catalog import LONGEST_WIRE, Catalog, Listing, build, wire_part
from agent_gate.core.ids import fold_namespace
from agent_gate.core.tool import Definition, Tool
from agent_gate.policy import Policy
from agent_gate.policy.lint import Unlisted
from agent_gate.policy.names import name_part
from agent_gate.policy.written import policy_of
from agent_gate.sources.mcp.listing import traits_of


def declared_tools(loaded: Loaded) -> Catalog:
    """The catalog of everything declared in YAML; MCP servers are not asked."""
    listings = [
        Listing(
            key=service.name,
            namespace=fold_namespace(service.name),
            title=service.name,
            definitions=[to_definition(service, tool) for tool in service.tools],
        )
        for service in loaded.settings.services.values()
    ]
    return build(listings)


def unlisted(loaded: Loaded) -> list[Unlisted]:
    """The sources whose tools only a running gateway knows; of tool hosts not even the namespace is known."""
    settings = loaded.settings
    found = [
        Unlisted(fold_namespace(key), starts(server), spelled_starts(server))
        for key, server in settings.servers.items()
    ]
    return [*found, Unlisted()] if settings.hosts or settings.peers is not None else found


def starts(server: ServerSettings) -> tuple[str, ...]:
    """How the names of a server's tools begin in rules."""
    wire = f"{wire_part(server.key)}__"[: LONGEST_WIRE - 9]
    return (wire, f"{fold_namespace(server.key)}:") if server.prefix else ("",)


def spelled_starts(server: ServerSettings) -> tuple[str, ...]:
    """How rules that refuse or ask may also write it: the key as it stands in the file."""
    keys = {server.key, wire_part(server.key), fold_namespace(server.key)}
    return tuple(sorted(f"{key}{sign}" for key in keys for sign in ("__", ":")))


def supposed_tool(loaded: Loaded, name: str, arguments: Iterable[str]) -> Tool | None:
    """A tool of an MCP server as far as its name tells: it takes what it is given, and claims nothing of itself."""
    for server in loaded.settings.servers.values():
        begins = (*starts(server), *spelled_starts(server))
        if (rest := after_start(name, begins)) is not None:
            own = as_rules_write(loaded, begins, rest)
            return next(iter(build([supposed_listing(server, own, arguments)]).tools), None)
    return None


def after_start(name: str, begins: Iterable[str]) -> str | None:
    return next(
        (name[len(start) :] for start in begins if start and name.startswith(start) != (name == start)), None
    )


def as_rules_write(loaded: Loaded, begins: Iterable[str], name: str) -> str:
    """The server's own spelling of a name, as far as a rule tells it."""
    written = (after_start(name_part(rule.pattern), begins) for rule in (*loaded.rules, *loaded.defaults))
    return next((own for own in written if own and wire_part(own) == name), name)


def supposed_listing(server: ServerSettings, name: str, arguments: Iterable[str]) -> Listing:
    definition = Definition(
        name=name,
        input_schema={"type": "object", "properties": {argument: {} for argument in arguments}},
        traits=traits_of({}, server),
    )
    return Listing(key=server.key, namespace=fold_namespace(server.key), definitions=[definition])


def look_at(config: Path | None, permissions: Path | None) -> tuple[Loaded, Catalog, Policy]:
    loaded = load(config, permissions)
    return loaded, declared_tools(loaded), policy_of(loaded)

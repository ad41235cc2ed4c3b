"""A configuration looked at without running it: its tools, as far as the files alone tell."""

from pathlib import Path

from agent_gate.app import policy_of
from agent_gate.config.definition import to_definition
from agent_gate.config.load import Loaded, load
from agent_gate.core.catalog import Catalog, Listing, build
from agent_gate.core.ids import fold_namespace
from agent_gate.policy import Policy


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


def look_at(config: Path | None, permissions: Path | None) -> tuple[Loaded, Catalog, Policy]:
    loaded = load(config, permissions)
    return loaded, declared_tools(loaded), policy_of(loaded)

"""A configuration looked at without running it: its tools, as far as the files alone tell."""

from pathlib import Path

from agent_gate.config.load import Loaded, load
from agent_gate.core.catalog import Catalog
from agent_gate.policy import Policy
from agent_gate.policy.written import policy_of
from agent_gate.surfaces.admin.policy_faults import declared_tools


def look_at(config: Path | None, permissions: Path | None) -> tuple[Loaded, Catalog, Policy]:
    loaded = load(config, permissions)
    return loaded, declared_tools(loaded), policy_of(loaded)

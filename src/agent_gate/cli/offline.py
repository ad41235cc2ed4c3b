"""A configuration looked at without running it: its tools, as far as the files alone tell."""

from pathlib import Path

from agent_gate.access.sign_in.desk import KEY as AGENTS
from agent_gate.config.load import Loaded, load
from agent_gate.core.catalog import Catalog, Listing, build
from agent_gate.core.tool import Tool
from agent_gate.policy import Policy
from agent_gate.policy.written import policy_of
from agent_gate.sources.accounts.questions import KEY as CONNECTIONS
from agent_gate.sources.accounts.questions import QUESTIONS
from agent_gate.sources.accounts.source import TOOLS
from agent_gate.sources.agents.source import SIGN_IN
from agent_gate.surfaces.admin.policy_faults import declared_tools

BUILT_IN = (
    Listing(key=CONNECTIONS, namespace=CONNECTIONS, definitions=TOOLS, reads=QUESTIONS),
    Listing(key=AGENTS, namespace=AGENTS, reads=(SIGN_IN,)),
)
"""The gateway's own sources, which are there when something needs them."""


def look_at(config: Path | None, permissions: Path | None) -> tuple[Loaded, Catalog, Policy]:
    loaded = load(config, permissions)
    return loaded, declared_tools(loaded), policy_of(loaded)


def tools_for_rules(catalog: Catalog) -> tuple[Tool, ...]:
    """The tools that rules can mean; of files that name no tool, nothing can be said."""
    own = build(BUILT_IN)
    return (*catalog.tools, *own.tools, *own.reads.values()) if catalog.tools else ()

"""How the gateway makes MCP sources: one for each entry of its servers."""

from collections.abc import Sequence

from agent_gate.config.servers.section import SERVERS
from agent_gate.config.servers.settings import ServerSettings
from agent_gate.config.settings import Settings
from agent_gate.core.ports import Plan
from agent_gate.sources.mcp.lists.reads import reads
from agent_gate.sources.mcp.single import SingleServer
from agent_gate.sources.mcp.source import McpSource
from agent_gate.sources.toolbox import Toolbox


class McpKind:
    """The kind `mcp`, under which this source is registered."""

    name = "mcp"
    section = SERVERS

    def make(self, settings: Settings, toolbox: Toolbox) -> Sequence[Plan]:
        return [plan(server, toolbox) for server in SERVERS.of(settings).values()]


def plan(server: ServerSettings, toolbox: Toolbox) -> Plan:
    others = toolbox.others if server.single else None
    single = SingleServer(server, toolbox, others) if others is not None else None
    source, shared = single or McpSource(server, toolbox), server.credentials == "shared"
    return Plan(
        source=source,
        apart=None if shared else source,
        single=single,
        settings=server,
        reads=reads(trusted=server.trust_annotations, timeout=server.timeout) if shared else (),
        enabled=server.enabled,
        on_demand=server.connect == "on-demand",
        ready_when_tried=server.ready == "tried",
        prefix=server.prefix,
        hold_changes=server.pin == "hold",
        pinned=True,
    )


SOURCE = McpKind()

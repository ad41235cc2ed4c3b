"""The kind `remote`: hosts on this machine, each on a Unix socket."""

from agent_gate.config.settings import Settings
from agent_gate.core.ports import Plan
from agent_gate.sources.remote.settings import HOSTS, HostSettings
from agent_gate.sources.remote.source import RemoteSource
from agent_gate.sources.remote.ways import LocalWay
from agent_gate.sources.toolbox import Toolbox


class RemoteKind:
    name = "remote"
    section = HOSTS

    def make(self, settings: Settings, toolbox: Toolbox) -> list[Plan]:
        tenant = settings.gateway.tenant
        return [self._plan(name, host, tenant, toolbox) for name, host in HOSTS.of(settings).items()]

    def _plan(self, name: str, host: HostSettings, tenant: str, toolbox: Toolbox) -> Plan:
        way = LocalWay(toolbox.pool, host.socket)
        source = RemoteSource(name, way, toolbox, tenant=tenant, trusted=host.trust)
        return Plan(source=source, settings=(name, host, tenant), pinned=True)


SOURCE = RemoteKind()

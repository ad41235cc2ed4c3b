"""Tool hosts: programs that speak the remote tool protocol, paired over mTLS or on a Unix socket of this machine."""

from agent_gate.sources.remote.kind import SOURCE
from agent_gate.sources.remote.peering import Peering
from agent_gate.sources.remote.source import RemoteSource

__all__ = ["SOURCE", "Peering", "RemoteSource"]

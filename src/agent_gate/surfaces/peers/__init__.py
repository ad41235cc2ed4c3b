"""Where paired components come in: events, leases, and the operator's API for a paired CLI."""

from agent_gate.surfaces.peers.surface import PeersSurface

__all__ = ["PeersSurface"]

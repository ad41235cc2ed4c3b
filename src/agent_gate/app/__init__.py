"""The composition root: the only folder that knows every other. It turns a configuration into a running gateway."""

from agent_gate.app.gateway import Gateway

__all__ = ["Gateway"]

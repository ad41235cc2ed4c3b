"""REST: describe and call tools with plain HTTP, and the OpenAPI document for it."""

from agent_gate.surfaces.rest.surface import RestSurface

__all__ = ["RestSurface"]

"""The kinds of component that can be paired, and what a certificate of each kind may be used for."""

from typing import Literal

import msgspec

ComponentType = Literal["tool_host", "subscriber", "listener", "operator"]
COMPONENT_TYPES: tuple[ComponentType, ...] = ("tool_host", "subscriber", "listener", "operator")
GATEWAY = "gateway"

ROLES: dict[ComponentType, str] = {
    "tool_host": "tool_host",
    "subscriber": "subscriber",
    "listener": "listener",
    "operator": "cli_admin",
}


def serves(component_type: str) -> bool:
    """Whether others connect to this component over TLS."""
    return component_type in ("tool_host", GATEWAY)


def dials(component_type: str, *, dials_gateway: bool = False) -> bool:
    """Whether this component connects to the gateway; a tool host only where the operator said so."""
    return component_type != "tool_host" or dials_gateway


class PeerNotes(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """What the operator said of a peer."""

    pool: str = ""
    publishes: tuple[str, ...] = ()
    trusted: bool = False
    dials_in: bool = False

    @property
    def dials_gateway(self) -> bool:
        """Whether a tool host may connect to the gateway: to be called, or to publish."""
        return self.dials_in or bool(self.publishes)


NOTHING_NOTED = PeerNotes()

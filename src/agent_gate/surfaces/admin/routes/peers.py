"""Peers as an operator sees them: who is paired, until when, and taking it back. Pairing itself is not here."""

from typing import Any

from agent_gate.peers.encoding import from_base64
from agent_gate.peers.records import Peer
from agent_gate.peers.roles import ROLES
from agent_gate.peers.signing import key_fingerprint
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import FLAG, OperatorRequest, Route, RouteAnswer


def shown_peer(peer: Peer) -> dict[str, Any]:
    return {
        "name": peer.name,
        "component_type": peer.component_type,
        "endpoint": peer.endpoint,
        "status": peer.status,
        "fingerprint": key_fingerprint(from_base64(peer.identity_key)),
        "certificate": peer.fingerprint,
        "serial": peer.serial,
        "not_after": peer.not_after or None,
        "paired_at": peer.paired_at,
        "last_seen": peer.last_seen,
        "revoked_at": peer.revoked_at,
        "reason": peer.reason,
        "trusted": peer.notes.trusted,
        "role": ROLES.get(peer.component_type),  # type: ignore[call-overload]
        "namespace": peer.namespace if peer.component_type == "tool_host" else None,
        "publishes": list(peer.notes.publishes),
        "dials_in": peer.notes.dials_in,
    }


class PeerRoutes:
    def __init__(self, admin: Admin) -> None:
        self._peering = admin.peering

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/api/peers", self._list, "Every peer, and how it stands with it"),
            Route("GET", "/api/peers/{name}", self._show_one, "One peer"),
            Route("DELETE", "/api/peers/{name}", self._revoke, "Revoke a peer; its next request is refused"),
            Route(
                "POST", "/api/peers/{name}/trust", self._trust, "Believe what a host says of its tools",
                body={"trusted": FLAG},
            ),
        ]  # fmt: skip

    async def _list(self, _ask: OperatorRequest) -> RouteAnswer:
        return [shown_peer(peer) for peer in self._peering.known()]

    async def _show_one(self, ask: OperatorRequest) -> RouteAnswer:
        return shown_peer(self._peering.peers.get(ask.values["name"]))

    async def _revoke(self, ask: OperatorRequest) -> RouteAnswer:
        name = ask.values["name"]
        await self._peering.revoke(name, ask.person)
        return shown_peer(self._peering.peers.get(name))

    async def _trust(self, ask: OperatorRequest) -> RouteAnswer:
        trusted = ask.body().get("trusted", True) is True
        return shown_peer(await self._peering.trust(ask.values["name"], ask.person, trusted=trusted))

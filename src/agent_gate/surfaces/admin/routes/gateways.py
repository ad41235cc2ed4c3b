"""The gateways that share the store: who they are, how they do, and who does what only one may do."""

from typing import Any

from agent_gate.store.gateways import FellowGateway
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import OperatorRequest, Route, RouteAnswer


def shown(one: FellowGateway, me: str, holds: list[str]) -> dict[str, Any]:
    return {
        "id": one.id,
        "this": one.id == me,
        "version": one.version,
        "state": one.state,
        "alive": one.alive,
        "silent": one.silent,
        "host": one.host,
        "pid": one.pid,
        "url": one.address,
        "started_at": one.started_at,
        "running": one.body.get("running", 0),
        "sources": one.body.get("sources", {}),
        "tools": one.body.get("tools", 0),
        "lag": one.body.get("lag", 0.0),
        "holds": holds,
    }


async def list_gateways(admin: Admin) -> list[dict[str, Any]]:
    """Every gateway on the store, with what it alone does now."""
    holders = await admin.others.leases.list_holders()
    me = admin.others.gateways.id
    return [
        shown(one, me, sorted(name for name, holder in holders.items() if holder == one.id))
        for one in await admin.others.gateways.list_all()
    ]


class GatewayRoutes:
    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def routes(self) -> list[Route]:
        return [Route("GET", "/api/gateways", self._list, "The gateways that share this store")]

    async def _list(self, _ask: OperatorRequest) -> RouteAnswer:
        return await list_gateways(self._admin)

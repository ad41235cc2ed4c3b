"""The admin API: every route an operator has, put together from the concepts they are about."""

from agent_gate import __version__
from agent_gate.access.roles import Rights
from agent_gate.errors import GatewayError
from agent_gate.net.http import HttpAnswer, Request, error_response
from agent_gate.net.media import refuse_media
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routes.agents import Agents
from agent_gate.surfaces.admin.routes.approvals import Approvals
from agent_gate.surfaces.admin.routes.connections import ConnectionRoutes
from agent_gate.surfaces.admin.routes.entries import EntryRoutes
from agent_gate.surfaces.admin.routes.gateways import GatewayRoutes
from agent_gate.surfaces.admin.routes.live import Live
from agent_gate.surfaces.admin.routes.overview import Overview
from agent_gate.surfaces.admin.routes.peers import PeerRoutes
from agent_gate.surfaces.admin.routes.policy import PolicyRoutes
from agent_gate.surfaces.admin.routes.policy_tools import PolicyTools
from agent_gate.surfaces.admin.routes.push import PushRoutes
from agent_gate.surfaces.admin.routes.record import RecordRoutes
from agent_gate.surfaces.admin.routes.screens import ScreenRoutes
from agent_gate.surfaces.admin.routes.sources import SourceRoutes
from agent_gate.surfaces.admin.routes.tools import ToolRoutes
from agent_gate.surfaces.admin.routes.vault import VaultRoutes
from agent_gate.surfaces.admin.routing import OperatorRequest, Route, RouteAnswer, Routes

PARTS = (
    Overview,
    GatewayRoutes,
    Approvals,
    Live,
    RecordRoutes,
    ToolRoutes,
    EntryRoutes,
    SourceRoutes,
    ScreenRoutes,
    PeerRoutes,
    PushRoutes,
    PolicyRoutes,
    PolicyTools,
    Agents,
    VaultRoutes,
    ConnectionRoutes,
)


class AdminApi:
    """Serves operators who are already known by name; who they are is decided before."""

    def __init__(self, admin: Admin) -> None:
        self._rights = admin.who.people.rights
        routes = [route for part in PARTS for route in part(admin).routes()]
        self.routes = Routes([*routes, Route("GET", "/openapi.json", self._show_openapi, "This API")])

    async def handle(
        self, request: Request, person: str, channel: str, rights: Rights | None = None
    ) -> HttpAnswer:
        """`rights` is what a program may do that is nobody under `people:`, such as a paired one."""
        if refused := refuse_media(request):
            return refused
        try:
            rights = self._rights(person) if rights is None else rights
            return await self.routes.dispatch(request, person, channel, rights)
        except GatewayError as error:
            return error_response(error)

    async def _show_openapi(self, _ask: OperatorRequest) -> RouteAnswer:
        return self.routes.openapi(__version__)

"""The admin socket: its folder and mode let only this user in, and the peer's uid says who it is."""

import os

from agent_gate.access.people import OPERATOR, People
from agent_gate.net.http import HttpAnswer, Request, Response, refusal
from agent_gate.net.websocket import WebSocketHandler
from agent_gate.surfaces.admin.api import AdminApi
from agent_gate.surfaces.admin.doors.pairings import PREFIX, Pairings
from agent_gate.surfaces.admin.routing import TERMINAL

FOREIGN = refusal(403, "FORBIDDEN", "Only the gateway's own user may use the admin socket")
NOT_OPERATOR = refusal(403, "FORBIDDEN", "Only somebody with the role operator pairs machines")


class AdminSocket:
    """Serves operator commands on this machine."""

    def __init__(self, api: AdminApi, people: People, pairings: Pairings) -> None:
        self._api, self._people, self._pairings = api, people, pairings

    def _person(self, request: Request) -> str:
        """Who asks; empty for somebody who may not."""
        person = self._people.with_uid(request.uid)
        return person or (OPERATOR if request.uid in (0, os.geteuid()) else "")

    async def handle(self, request: Request) -> HttpAnswer:
        person = self._person(request)
        if not person:
            return FOREIGN
        if request.path.startswith(PREFIX):
            if not self._people.rights(person).include("operator"):
                return NOT_OPERATOR
            return await self._pairings.handle(request, person)
        return await self._api.handle(request, person, TERMINAL)

    def upgrade(self, request: Request) -> WebSocketHandler | Response:
        person = self._person(request)
        if not person:
            return FOREIGN
        if not self._people.rights(person).include("operator"):
            return NOT_OPERATOR
        return self._pairings.upgrade(request, person)

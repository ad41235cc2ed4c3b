"""The admin socket: its folder and mode let only this user in, and the peer's uid says who it is."""

import os

from agent_gate.access.people import OPERATOR, People
from agent_gate.net.http import Request, refusal
from agent_gate.surfaces.admin.api import AdminApi
from agent_gate.surfaces.admin.routing import Reply


class AdminSocket:
    """Serves operator commands on this machine."""

    def __init__(self, api: AdminApi, people: People) -> None:
        self._api, self._people = api, people

    async def handle(self, request: Request) -> Reply:
        person = self._people.with_uid(request.uid)
        if request.uid not in (0, os.geteuid()) and not person:
            return refusal(403, "FORBIDDEN", "Only the gateway's own user may use the admin socket")
        return await self._api.handle(request, person or OPERATOR, "terminal")

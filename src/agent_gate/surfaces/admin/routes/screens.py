"""What agents have open, such as pages of a browser: to watch, and to stop."""

from msgspec import to_builtins

from agent_gate.errors import ViewFailed
from agent_gate.net.http import HttpAnswer, Response
from agent_gate.surfaces.admin.admin import Admin
from agent_gate.surfaces.admin.routing import OperatorRequest, Route, RouteAnswer

GONE = "This browser is not open any more"


class ScreenRoutes:
    def __init__(self, admin: Admin) -> None:
        self._sources = admin.sources

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/api/browsers", self._list, "Every open browser"),
            Route("GET", "/api/browsers/{id}/picture", self._show_picture, "What a browser shows"),
            Route("POST", "/api/browsers/{id}/stop", self._stop, "Close a browser at once"),
        ]

    async def _list(self, _ask: OperatorRequest) -> RouteAnswer:
        found = [screen for source in self._sources.watched() for screen in source.screens()]
        return to_builtins(found)

    async def _show_picture(self, ask: OperatorRequest) -> HttpAnswer:
        for source in self._sources.watched():
            picture = await source.screen_picture(ask.values["id"])
            if picture is not None:
                return Response(200, picture.body, content_type=picture.media_type.encode("ascii"))
        raise ViewFailed(GONE)

    async def _stop(self, ask: OperatorRequest) -> RouteAnswer:
        for source in self._sources.watched():
            if await source.stop_screen(ask.values["id"]):
                return {"stopped": ask.values["id"]}
        raise ViewFailed(GONE)

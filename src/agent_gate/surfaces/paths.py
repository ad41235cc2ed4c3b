"""Where each path of the public listener goes."""

from collections.abc import Awaitable

from agent_gate.access.door import CatchUp, Door
from agent_gate.access.issuers import Issuers
from agent_gate.errors import GatewayError
from agent_gate.net.http import HttpAnswer, Request, Response, error_response, refusal
from agent_gate.surfaces.mcp import McpSurface
from agent_gate.surfaces.oauth.surface import OAuthSurface
from agent_gate.surfaces.rest import RestSurface
from agent_gate.surfaces.rest.health import Health
from agent_gate.surfaces.typescript.surface import PATH as TYPESCRIPT
from agent_gate.surfaces.typescript.surface import TypeScriptSurface

MCP = (b"/mcp", b"/.well-known/oauth-protected-resource")
REST = (b"/api/", b"/openapi.json")


class Paths:
    """Everything but health asks for a token in its own surface."""

    def __init__(
        self,
        mcp: McpSurface,
        rest: RestSurface,
        typescript: TypeScriptSurface,
        health: Health,
        door: Door,
        issuers: Issuers,
        oauth: OAuthSurface,
    ) -> None:
        self._issuers, self._oauth = issuers, oauth
        self._mcp, self._rest, self._typescript, self._health, self._door = (
            mcp,
            rest,
            typescript,
            health,
            door,
        )

    def handle(self, request: Request) -> HttpAnswer | Awaitable[HttpAnswer]:
        door = self._door
        if (door.shared or self._issuers.trusted) and (needed := door.needs(request)) is not None:
            return self._judge_later(request, needed)
        return self._serve(request)

    async def _judge_later(self, request: Request, needed: CatchUp) -> HttpAnswer:
        await needed()
        answer = self._serve(request)
        return await answer if isinstance(answer, Awaitable) else answer

    def _serve(self, request: Request) -> HttpAnswer | Awaitable[HttpAnswer]:
        target = request.target
        if target.startswith(b"/mcp"):
            return self._mcp.handle(request)
        if self._oauth.serves(request.path):
            return self._oauth.handle(request)
        if target.startswith(MCP):
            return self._mcp.handle(request)
        if target.startswith(REST):
            return self._rest.handle(request)
        path = request.path
        if path == "/health":
            return self._health.health()
        if path == "/ready":
            return self._health.ready()
        if path == "/status":
            return self._status(request)
        if path == TYPESCRIPT:
            return self._typescript.handle(request)
        return refusal(404, "INVALID_ARGS", "There is nothing here. MCP is at /mcp, tools are at /api/tools")

    def _status(self, request: Request) -> Response:
        try:
            return self._health.status(self._door.enter(request))
        except GatewayError as error:
            return error_response(error)

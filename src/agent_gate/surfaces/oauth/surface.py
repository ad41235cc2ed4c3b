"""`OAuthSurface`: the paths by which clients sign in, while the configuration offers it."""

from collections.abc import Callable

from agent_gate.errors import GatewayError
from agent_gate.net.http import Request, Response, error_response, refusal
from agent_gate.surfaces.oauth.authorize import AuthorizePages
from agent_gate.surfaces.oauth.browser import PATH
from agent_gate.surfaces.oauth.documents import well_known
from agent_gate.surfaces.oauth.endpoints import OAuthEndpoints
from agent_gate.surfaces.oauth.logins import CALLBACK, LOGOUT
from agent_gate.surfaces.oauth.open_to_all import ENDPOINTS, WELL_KNOWN, is_open, preflight

INVITATION = "/invite/"
SERVED = ENDPOINTS | {PATH, CALLBACK, LOGOUT}


class OAuthSurface:
    """`issuer` is None while nobody can sign in; then these paths are like any others that are not there."""

    def __init__(
        self,
        issuer: Callable[[], str | None],
        pages: AuthorizePages,
        endpoints: OAuthEndpoints,
        reads_documents: Callable[[], bool] = lambda: True,
        takes_assertions: Callable[[], bool] = lambda: False,
    ) -> None:
        self._reads_documents, self._takes_assertions = reads_documents, takes_assertions
        self.issuer, self._pages, self._endpoints = issuer, pages, endpoints

    def serves(self, path: str) -> bool:
        """Whether a path of the public listener belongs here."""
        ours = path in SERVED or path.startswith((f"{PATH}/", INVITATION, WELL_KNOWN))
        return ours and self.issuer() is not None

    async def handle(self, request: Request) -> Response:
        issuer, path = self.issuer(), request.path
        if issuer is None:
            return refusal(404, "INVALID_ARGS", "There is nothing here")
        if is_open(path) and (allowed := preflight(request)) is not None:
            return allowed
        try:
            if path.startswith(WELL_KNOWN):
                return well_known(
                    issuer,
                    request,
                    reads_documents=self._reads_documents(),
                    takes_assertions=self._takes_assertions(),
                )
            if path in ENDPOINTS:
                return await self._endpoints.handle(issuer, request)
            if path.startswith(INVITATION):
                return await self._pages.invite(issuer, request, path.removeprefix(INVITATION))
            return await self._pages.handle(issuer, request)
        except GatewayError as error:
            return error_response(error)

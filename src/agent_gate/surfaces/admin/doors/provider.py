"""`/oidc/…`: people log in at the OpenID provider and come back with its word for who they are.

The login travels in a cookie of the browser that began it, sealed, so that a code which another browser was given is
worth nothing here. What comes back becomes a one-time link, which opens a session as every other link does.
"""

import html
import logging
from urllib.parse import urlsplit

from agent_gate.access.login import HOST_ONLY, LoginLink, Logins, cookie_of
from agent_gate.access.oidc.provider import OidcProvider
from agent_gate.core.ports import Clock
from agent_gate.errors import GatewayError, Unauthorized
from agent_gate.net.guard import Backoff
from agent_gate.net.http import Header, Request, Response, json_response, refusal
from agent_gate.net.media import FORM, refuse_media
from agent_gate.surfaces.admin.admin import VouchedLogins
from agent_gate.surfaces.admin.doors.answers import page
from agent_gate.surfaces.listeners import Listeners

log = logging.getLogger("agent_gate.login")
PREFIX = "/oidc/"
BEGIN, CALLBACK, LOGOUT = (f"{PREFIX}{name}" for name in ("login", "callback", "logout"))
FLOW_SECONDS = 600.0
LINK_SECONDS = 60.0
LONGEST = 4096
COOKIE = "agent_gate_oidc"
PRIVATE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"referrer-policy", b"no-referrer"))
NOT_BEGUN = "This login was not begun in this browser, or too long ago. Begin again"
NO_PROVIDER = refusal(404, "INVALID_ARGS", "This gateway knows no OpenID provider. See auth.oidc")


class ProviderDoor:
    """Serves four paths, none of which asks who comes: each brings its own proof."""

    def __init__(self, vouching: VouchedLogins, logins: Logins, listeners: Listeners, clock: Clock) -> None:
        self._vouching, self._logins, self._listeners, self._clock = vouching, logins, listeners, clock
        self._backoff = Backoff()

    async def handle(self, request: Request) -> Response:
        provider = self._vouching.sessions.provider()
        if provider is None:
            return NO_PROVIDER
        wanted = "POST" if request.path == LOGOUT else "GET"
        if request.method != wanted:
            return refusal(
                405, "INVALID_ARGS", f"Only {wanted} is offered here", ((b"allow", wanted.encode()),)
            )
        match request.path:
            case "/oidc/offer":
                return json_response(200, {"provider": urlsplit(provider.client.issuer).hostname}, PRIVATE)
            case "/oidc/login":
                return await self._begin(request, provider)
            case "/oidc/callback":
                return await self._finish(request, provider)
            case "/oidc/logout":
                return await self._end(request)
        return refusal(404, "INVALID_ARGS", "There is nothing here")

    async def _begin(self, request: Request, provider: OidcProvider) -> Response:
        base = self._listeners.people_url()
        host = (request.header(b"host") or b"").decode("latin-1").lower()
        if host != urlsplit(base).netloc.lower():
            return redirect(f"{base}{BEGIN}")
        try:
            url, flow = await provider.begin(f"{base}{CALLBACK}", FLOW_SECONDS)
        except GatewayError as error:
            log.warning("No login could be begun at the provider", extra={"why": error.message})
            return page(502, "The provider cannot be reached", f"<p>{html.escape(error.message)}.</p>")
        return redirect(url, self._cookie(self._vouching.flows.seal(flow), FLOW_SECONDS))

    def _cookie(self, value: str, seconds: float) -> Header:
        # Lax, because the browser comes back from another site; it is good for one login and nothing else.
        where = "/; Secure" if self._is_encrypted() else PREFIX
        text = f"{self._cookie_name()}={value}; Path={where}; Max-Age={seconds:.0f}; HttpOnly; SameSite=Lax"
        return b"set-cookie", text.encode()

    def _is_encrypted(self) -> bool:
        return self._listeners.people_url().startswith("https:")

    def _cookie_name(self) -> str:
        """Over TLS one that no neighbour of this host can set, who would have somebody finish a login not their own."""
        return f"{HOST_ONLY}{COOKIE}" if self._is_encrypted() else COOKIE

    async def _finish(self, request: Request, provider: OidcProvider) -> Response:
        over = self._cookie("", 0)
        now = self._clock.monotonic()
        if self._backoff.wait(request.peer, now):
            return page(429, "Too many failed logins", "<p>Wait a while, then begin again.</p>")
        cookie = cookie_of(request, self._cookie_name())
        if cookie is None:  # nothing to guess at: a page elsewhere makes browsers send as much as it likes
            return said(Unauthorized(NOT_BEGUN), over)
        try:
            came = {name: value for name, value in request.params().items() if len(value) <= LONGEST}
            flow = self._vouching.flows.open(cookie)
            if flow is None:
                raise Unauthorized(NOT_BEGUN)
            vouched = await provider.finish(flow, came)
            person = await self._vouching.people.keep(vouched)
        except GatewayError as error:
            self._backoff.failed(request.peer, now)
            log.warning("Somebody could not log in at the provider", extra={"why": error.message})
            return said(error, over)
        self._backoff.succeeded(request.peer)
        sessions = self._vouching.sessions
        link = LoginLink(person, LINK_SECONDS, self._vouching.seconds, sessions.body(vouched))
        # Before anybody can follow it, since that may be on another gateway.
        await sessions.keep_tokens(link.name, vouched.tokens)
        secret = await self._logins.offer(link)
        log.info("The provider vouched for somebody", extra={"person": person})
        return redirect(f"{self._listeners.people_url()}/login#{secret}", over)

    async def _end(self, request: Request) -> Response:
        """The provider says that somebody's login is over (back-channel logout)."""
        if refused := refuse_media(request, FORM):
            return refused
        try:
            form = request.form()
            count = await self._vouching.end_by_provider(form.get("logout_token", ""))
        except GatewayError as error:
            log.warning("A logout token was refused", extra={"why": error.message})
            return json_response(400, {"error": "invalid_request"}, PRIVATE)
        log.info("The provider ended logins", extra={"ended": count})
        return Response(200, b"", PRIVATE)

    async def log_out(self, session: str | None) -> str | None:
        """Where a browser logs out at the provider as well, for a session that came of it."""
        sessions = self._vouching.sessions
        provider = sessions.provider()
        if session is None or provider is None or not sessions.is_of_provider(session):
            return None
        try:
            tokens = await sessions.take_tokens(session)
            return await provider.end_session_url(tokens, f"{self._listeners.people_url()}/login")
        except GatewayError as error:
            log.warning("The provider was not told of a logout", extra={"why": error.message})
            return None


def redirect(url: str, *headers: Header) -> Response:
    return Response(303, b"", ((b"location", url.encode("ascii", "replace")), *PRIVATE, *headers))


def said(error: GatewayError, over: Header) -> Response:
    shown = page(
        error.status if error.status in (401, 403) else 400,
        "Nobody was logged in",
        f"<p>{html.escape(error.message)}.</p>",
    )
    shown.headers = (*shown.headers, over)
    return shown

"""`/oidc/…` of the public listener: a person logs in at the provider, and so lets their own agent in.

The login belongs to the browser that began it, by its cookie, and counts once: what it was begun with is in the store,
so that any gateway finishes it. Where the person's groups do not give what is asked for, people are asked.
"""

import logging
from typing import Protocol
from urllib.parse import urlsplit

from agent_gate.access.oidc.flows import SealedFlows
from agent_gate.access.oidc.provider import OidcProvider
from agent_gate.access.oidc.sign_ins import VouchedSignIns
from agent_gate.access.sign_in.consents import LOGIN_SECONDS, BegunSignIn, ProvedPerson
from agent_gate.access.sign_in.desk import SignInDesk
from agent_gate.access.sign_in.faults import SignInFault
from agent_gate.access.sign_in.redirects import destination
from agent_gate.access.sign_in.request import AskedFor
from agent_gate.approval.numbers import new_number
from agent_gate.calls.calls import Calls
from agent_gate.core.call import new_id
from agent_gate.core.ports import Clock
from agent_gate.errors import GatewayError, RateLimited
from agent_gate.net.addresses import network_of
from agent_gate.net.guard import Backoff
from agent_gate.net.http import Header, Request, Response, json_response
from agent_gate.net.media import FORM, refuse_media
from agent_gate.store.statement import Conflict
from agent_gate.surfaces.oauth.browser import COOKIE, WAIT, answer_url, carried_cookie, redirect, set_cookie
from agent_gate.surfaces.oauth.page import fault_page, leaving_page
from agent_gate.surfaces.oauth.question import question

log = logging.getLogger("agent_gate.oauth")
CALLBACK, LOGOUT = "/oidc/callback", "/oidc/logout"
MOST_BODY = 32 << 10
NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"),)
LONGEST = 4096
NOT_BEGUN = "This login was not begun in this browser, was finished before, or was begun too long ago. Begin again in the client"


class ProviderInUse(Protocol):
    """`provider` is None where there is none."""

    def provider(self) -> OidcProvider | None: ...
    @property
    def sign_ins(self) -> VouchedSignIns: ...
    async def end_by_provider(self, logout_token: str) -> int: ...


class LoginPages:
    """Where a browser is sent to log in, where it comes back, and where the provider says that a login is over."""

    def __init__(
        self, desk: SignInDesk, calls: Calls, clock: Clock, vouching: ProviderInUse, flows: SealedFlows
    ) -> None:
        self._desk, self._calls, self._clock = desk, calls, clock
        self._vouching, self._provider, self._flows = vouching, vouching.provider, flows
        self._backoff = Backoff()

    def offer(self) -> str | None:
        """The host at which people log in; None where they cannot."""
        provider = self._provider()
        return urlsplit(provider.client.issuer).hostname if provider is not None else None

    async def begin(self, issuer: str, request: Request, asked: AskedFor, browser: str) -> Response:
        """Send the browser to the provider; where it logged in for the same before, on to what came of that."""
        provider, begun = self._provider(), self._desk.begun
        if provider is None:
            raise SignInFault("invalid_request", "Nobody can log in at a provider here any more")
        if (known := await begun.find_same(browser, asked, login=True)) is not None:
            return redirect(f"{WAIT}?id={known.id}", 303)
        url, flow = await provider.begin(f"{issuer}{CALLBACK}", LOGIN_SECONDS)
        sign_in = BegunSignIn(
            id=new_id(),
            state="proving",
            asked=asked,
            number="",
            expires_at=self._clock.now() + LOGIN_SECONDS,
            flow=self._flows.seal(flow),
        )
        try:
            new = self._desk.clients.beginning(asked.client_id)
            await begun.begin_login(sign_in, browser, request.peer, flow.state, new)
        except Conflict:
            raise SignInFault(
                "invalid_request", "This was sent twice at once. Go back, and press it again"
            ) from None
        leaving = leaving_page(url, urlsplit(provider.client.issuer).hostname or "")
        leaving.headers = (*leaving.headers, set_cookie(issuer, COOKIE, browser, path=CALLBACK))
        return leaving

    async def end(self, request: Request) -> Response:
        """The provider says that somebody's login is over (back-channel logout)."""
        if request.method != "POST" or refuse_media(request, FORM) or len(request.body) > MOST_BODY:
            return json_response(400, {"error": "invalid_request"}, NO_STORE)
        form = request.form()
        try:
            count = await self._vouching.end_by_provider(form.get("logout_token", ""))
        except GatewayError as error:
            log.warning("A logout token was refused", extra={"why": error.message})
            return json_response(400, {"error": "invalid_request"}, NO_STORE)
        log.info("The provider ended logins", extra={"ended": count})
        return Response(200, b"", NO_STORE)

    async def finish(self, issuer: str, request: Request) -> Response:
        """The browser comes back."""
        if request.method != "GET":
            return fault_page(405, "This address is where a browser ends after a login")
        now = self._clock.monotonic()
        if wait := self._backoff.wait(request.peer, now):
            raise RateLimited("Too many logins failed. Wait a while, then begin again", retry_after=wait)
        came = {name: value for name, value in request.params().items() if len(value) <= LONGEST}
        browser, state = carried_cookie(issuer, request, COOKIE), came.get("state", "")
        sign_in = await self._desk.begun.take_login(browser, state) if browser and state else None
        if sign_in is None:
            # A page elsewhere makes browsers send as much as it likes, but without the cookie.
            if browser and state:
                self._backoff.failed(request.peer, now)
            raise SignInFault("invalid_request", NOT_BEGUN)
        try:
            await self._check(sign_in, came, request.peer)
        except GatewayError as error:
            await self._desk.begun.end(sign_in.id)
            log.warning("A login let no agent in", extra={"call": sign_in.id, "why": error.message})
            asked = sign_in.asked
            back = answer_url(asked.redirect_uri, issuer, asked.state, error="access_denied")
            return fault_page(error.status if error.status in (403, 429) else 400, error.message, back)
        self._backoff.succeeded(request.peer)
        return redirect(f"{WAIT}?id={sign_in.id}", 303)

    async def _check(self, sign_in: BegunSignIn, came: dict[str, str], address: str) -> None:
        provider, flow = self._provider(), self._flows.open(sign_in.flow)
        if provider is None or flow is None:
            raise SignInFault("invalid_request", NOT_BEGUN)
        vouched = await provider.finish(flow, came)
        await self._let_in(sign_in, await self._vouching.sign_ins.take(sign_in.id, vouched), address)

    async def _let_in(self, sign_in: BegunSignIn, proved: ProvedPerson, address: str) -> None:
        """The login is the yes for what the person's groups give. Of more, people are asked."""
        terms = self._desk.own_terms(sign_in.asked, proved)
        if terms is None:
            await self._desk.begun.check_room(network_of(address))
        number = new_number(await self._desk.begun.read_numbers())
        known = await self._desk.begun.prove(sign_in, proved, number)
        to = destination(sign_in.asked.redirect_uri)
        if terms is not None and await self._calls.let_in(question(known, address, terms)):
            log.info("Somebody signed in", extra={"call": known.id, "person": proved.person, "to": to})
            return
        await self._calls.ask_to_let_in(question(known, address), known.number)
        log.info("Somebody wants to sign in", extra={"call": known.id, "person": proved.person, "to": to})

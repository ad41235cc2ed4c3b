"""`/authorize`: looking at it changes nothing; *Continue* asks people, or sends the browser to the provider; it waits,
and goes on with a code.

The sign-in belongs to the browser that began it, by a cookie. Nobody can answer here.
"""

import hmac
import logging
import secrets
from collections.abc import Callable, Mapping

from agent_gate.access.sign_in.consents import INVITE_SECONDS, OPEN_SECONDS, BegunSignIn
from agent_gate.access.sign_in.desk import SignInDesk
from agent_gate.access.sign_in.faults import SignInFault
from agent_gate.access.sign_in.redirects import destination, is_loopback
from agent_gate.access.sign_in.request import CARRIED, AskedFor, Audience, read_request, redirect_of
from agent_gate.approval.inbox import Inbox
from agent_gate.approval.numbers import new_number
from agent_gate.calls.calls import Calls
from agent_gate.core.approval import Approval
from agent_gate.core.call import State, new_id
from agent_gate.core.ports import Clock
from agent_gate.errors import Forbidden, GatewayError
from agent_gate.net.http import Request, Response
from agent_gate.net.media import FORM, refuse_media
from agent_gate.observe import failpoint
from agent_gate.store.statement import Conflict
from agent_gate.surfaces.oauth.browser import (
    COOKIE,
    INVITE,
    PATH,
    WAIT,
    answer_url,
    carried_cookie,
    redirect,
    set_cookie,
)
from agent_gate.surfaces.oauth.logins import CALLBACK, LOGOUT, LoginPages
from agent_gate.surfaces.oauth.page import consent_page, fault_page, invited_page, page, waiting_page
from agent_gate.surfaces.oauth.question import question

log = logging.getLogger("agent_gate.oauth")
PROOF = "proof"
MOST_BODY = 16 << 10
UNKNOWN = "This sign-in is not known in this browser. Begin again in the client"
FOREIGN = "Only this gateway's own page may send this, from the browser that opened it"
OVER_STATES = (State.DENIED, State.EXPIRED, State.WITHDRAWN)


class AuthorizePages:
    """`question_url` is where people see a question, as far as this browser can reach it; `logins` are those at the
    provider."""

    def __init__(
        self,
        desk: SignInDesk,
        calls: Calls,
        inbox: Inbox,
        clock: Clock,
        key: bytes,
        question_url: Callable[[Request, str], str | None],
        logins: LoginPages,
    ) -> None:
        self._desk, self._calls, self._inbox, self._clock = desk, calls, inbox, clock
        self._key, self._question_url, self._logins = key, question_url, logins

    async def handle(self, issuer: str, request: Request) -> Response:
        try:
            if request.path == CALLBACK:
                return await self._logins.finish(issuer, request)
            if request.path == LOGOUT:
                return await self._logins.end(request)
            if request.path == WAIT and request.method in ("GET", "HEAD"):
                return await self._wait(issuer, request)
            if request.path == PATH and request.method in ("GET", "HEAD"):
                return await self._show(issuer, request)
            if request.path == PATH and request.method == "POST":
                return await self._begin(issuer, request)
        except GatewayError as error:
            status = error.answers if isinstance(error, SignInFault) else error.status
            return fault_page(400 if status == 401 else status, error.message)
        return fault_page(404, "There is nothing here")

    async def invite(self, issuer: str, request: Request, secret: str) -> Response:
        """The page of an invitation: this browser remembers it, and its client can register. Looking uses nothing up."""
        known = "".join(one for one in secret if one.isascii() and (one.isalnum() or one in "-_"))[:64]
        if await self._desk.begun.accepts_invite(known):
            self._desk.clients.welcome(request.peer, INVITE_SECONDS)
        return invited_page(issuer, set_cookie(issuer, INVITE, known, INVITE_SECONDS))

    async def _show(self, issuer: str, request: Request) -> Response:
        params = carried(request.params())
        asked = await self._read(issuer, request, params)
        if isinstance(asked, Response):
            return asked
        browser = carried_cookie(issuer, request, COOKIE) or secrets.token_urlsafe(32)
        fields = params | {PROOF: self._proof(browser, params)}
        return consent_page(asked, fields, set_cookie(issuer, COOKIE, browser), self._logins.offer())

    async def _read(self, issuer: str, request: Request, params: Mapping[str, str]) -> AskedFor | Response:
        """What is asked for. Where the redirect address is the client's own, it can be told what is wrong: a program on
        this computer at once, anybody else by a link that the person follows."""
        client = await self._desk.clients.find(params.get("client_id", ""), request.peer)
        uri = redirect_of(client, params)
        try:
            return read_request(client, uri, params, Audience(issuer))
        except SignInFault as fault:
            back = answer_url(uri, issuer, params.get("state"), error=fault.error, description=fault.message)
            return redirect(back) if is_loopback(uri) else fault_page(400, fault.message, back)

    def _proof(self, browser: str, params: Mapping[str, str]) -> str:
        """Binds the form to the browser it was shown in, and to what it showed."""
        said = "\0".join(f"{name}={params[name]}" for name in CARRIED if name in params)
        return hmac.new(self._key, f"{browser}\0{said}".encode(), "sha256").hexdigest()

    async def _begin(self, issuer: str, request: Request) -> Response:
        if (refused := refuse_media(request, FORM)) or len(request.body) > MOST_BODY:
            return refused or fault_page(413, "The form is too large")
        form = request.form()
        params, browser = carried(form), carried_cookie(issuer, request, COOKIE)
        if browser is None or not from_own_page(request, issuer):
            raise Forbidden(FOREIGN)
        if not hmac.compare_digest(self._proof(browser, params).encode(), form.get(PROOF, "").encode()):
            raise Forbidden(FOREIGN)
        asked = await self._read(issuer, request, params)
        if isinstance(asked, Response):
            return asked
        if form.get("way") == "provider":
            return await self._logins.begin(issuer, request, asked, browser)
        sign_in = await self._desk.begun.find_same(browser, asked)
        if sign_in is None:
            invite = carried_cookie(issuer, request, INVITE)
            sign_in = await self._ask(asked, browser, request.peer, invite)
        return redirect(f"{WAIT}?id={sign_in.id}", 303)

    async def _ask(self, asked: AskedFor, browser: str, peer: str, invite: str | None) -> BegunSignIn:
        """Keep the sign-in, then put the question. One whose question could not be put is forgotten again."""
        sign_in = BegunSignIn(
            id=new_id(),
            state="asked",
            asked=asked,
            number=new_number(await self._desk.begun.read_numbers()),
            expires_at=self._clock.now() + OPEN_SECONDS,
        )
        begun = self._desk.begun
        try:
            new = self._desk.clients.beginning(asked.client_id)
            await begun.begin(sign_in, browser, peer, invite, new)
        except Conflict:
            known = await begun.find_same(browser, asked)
            if known is None:
                raise SignInFault(
                    "invalid_request", "This was sent twice at once. Press Continue again"
                ) from None
            return known
        try:
            await self._calls.ask_to_let_in(question(sign_in, peer), sign_in.number)
        except (GatewayError, Conflict):
            await begun.drop(sign_in.id)
            raise
        where = destination(asked.redirect_uri)
        log.info("Somebody wants to sign in", extra={"call": sign_in.id, "to": where})
        return sign_in

    async def _wait(self, issuer: str, request: Request) -> Response:
        browser, ident = carried_cookie(issuer, request, COOKIE), request.params().get("id", "")
        sign_in = await self._desk.begun.find_of_browser(ident, browser) if browser else None
        if sign_in is None:
            raise SignInFault("invalid_request", UNKNOWN, 404)
        asked = sign_in.asked
        if sign_in.state == "done":
            return page(200, "You are signed in", "<p>You can close this page.</p>")
        if sign_in.state in ("granted", "coded"):
            failpoint.reach("before_sign_in_code")
            code = await self._desk.begun.make_code(sign_in)
            if code is not None:
                return redirect(answer_url(asked.redirect_uri, issuer, asked.state, code=code))
        approval = await self._inbox.get(sign_in.id)
        if approval is None or self._is_over(sign_in, approval):
            await self._desk.begun.end(sign_in.id)
            return redirect(answer_url(asked.redirect_uri, issuer, asked.state, error="access_denied"))
        link = self._question_url(request, approval.id)
        return waiting_page(asked, sign_in.number, f"{WAIT}?id={sign_in.id}", link)

    def _is_over(self, sign_in: BegunSignIn, approval: Approval) -> bool:
        """Whether nobody will say yes any more."""
        late = sign_in.expires_at <= self._clock.now()
        return sign_in.state == "over" or approval.state in OVER_STATES or late


def carried(params: Mapping[str, str]) -> dict[str, str]:
    return {name: params[name] for name in CARRIED if name in params}


def from_own_page(request: Request, issuer: str) -> bool:
    """Whether the browser says that our own page sent this: that very origin, not only the site."""
    origin, fetched = request.header(b"origin"), request.header(b"sec-fetch-site")
    return origin == issuer.encode("ascii") and fetched in (None, b"same-origin")

"""Who is at the admin listener: one-time links and sessions for people, operator tokens for programs.

A link carries its secret behind `#`, so that no request line, log or previewer ever sees it, and works once. The
session it opens needs two halves: a cookie, and a key that the page keeps in its own origin's storage and sends as
a header. Cookies are shared by every port of a host; the key is not, so a stolen or foreign-made request lacks it.

Links and sessions are in the store: one that was made by a gateway is good on all that share it.
"""

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from agent_gate.access.door import CatchUp
from agent_gate.access.keys import Key, Keys
from agent_gate.access.tokens import digest
from agent_gate.core.call import new_id
from agent_gate.core.ports import Clock
from agent_gate.errors import Forbidden, GatewayError, Unauthorized
from agent_gate.net.guard import Backoff
from agent_gate.net.http import Request

LINK_SECONDS = 15 * 60.0
SESSION_SECONDS = 7 * 24 * 3600.0
MOST_LINKS = 100
KEY_HEADER = b"agent-gate-key"
HOST_ONLY = "__Host-"
"""How the name of a cookie begins that browsers take from this very host alone, and over TLS."""
NO_LOGIN = "Log in first: `agent-gate login` prints a link. Programs send an operator token as Authorization: Bearer TOKEN"


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who was let in: the person's name, and the channel their answers are recorded with."""

    person: str
    channel: str
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A new session: its two secrets, each shown once."""

    cookie: str
    key: str
    person: str
    seconds: float = SESSION_SECONDS


@dataclass(frozen=True, slots=True)
class LoginLink:
    """A link that nobody has followed yet: it works for `lasts` seconds, and opens a session of that name, of `seconds`.
    `vouched` is what the session keeps of a provider's word."""

    person: str
    lasts: float = LINK_SECONDS
    seconds: float = SESSION_SECONDS
    vouched: Mapping[str, str] = field(default_factory=dict)
    name: str = field(default_factory=new_id)


def cookie_of(request: Request, name: str) -> str | None:
    for part in (request.header(b"cookie") or b"").decode("latin-1").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return None


def same_origin(request: Request) -> bool:
    """Whether a browser sent this from our own page: exact host and port, not just the site."""
    origin, host = request.header(b"origin"), request.header(b"host") or b""
    fetched = request.header(b"sec-fetch-site")
    return (
        origin is not None
        and origin.lower() in (b"http://" + host.lower(), b"https://" + host.lower())
        and fetched in (None, b"same-origin")
    )


class Logins:
    """Makes links, opens sessions, and says who a request comes from."""

    def __init__(
        self,
        keys: Keys,
        clock: Clock,
        known: Callable[[str], bool],
        cookie: str,
        catch_up: CatchUp | None = None,
    ) -> None:
        """`known` says whether a person's name still counts, so that one removed from the file is out at once;
        `cookie` is the name of the page's cookie, the same on all gateways of a store and on no other; `catch_up`
        returns when what the other gateways did is known here.
        """
        self._keys, self._clock, self._known, self._cookie = keys, clock, known, cookie
        self._catch_up = catch_up
        self._backoff = Backoff()

    def cookie(self, *, encrypted: bool) -> str:
        """The cookie's name for a browser that comes over TLS, or without it."""
        return f"{HOST_ONLY}{self._cookie}" if encrypted else self._cookie

    async def offer(self, link: LoginLink) -> str:
        """The secret of a link that works once."""
        for spare in sorted(self._keys.list("link"), key=lambda key: key.created_at)[: -MOST_LINKS + 1]:
            await self._keys.revoke("link", spare.name)
        body = {
            "vouched": dict(link.vouched),
            "person": link.person,
            "seconds": link.seconds,
            "expires_at": self._clock.now() + link.lasts,
        }
        return await self._keys.make("link", link.name, body)

    async def redeem(self, request: Request, secret: str) -> Opened:
        """Open a session with a link's secret; the link is used up whatever happens next."""
        link = await self._take(request, secret)
        if link is None or link.body["expires_at"] <= self._clock.now():
            self._failed(request.peer)
            raise Unauthorized("This link was used or is too old. `agent-gate login` prints a fresh one")
        self._backoff.succeeded(request.peer)
        key, seconds = secrets.token_urlsafe(32), float(link.body["seconds"])
        body = {
            **link.body["vouched"],
            "person": link.person,
            "key": digest(key).hex(),
            "expires_at": self._clock.now() + seconds,
        }
        cookie = await self._keys.make("session", link.name, body)
        return Opened(cookie, key, link.person, seconds)

    async def _take(self, request: Request, secret: str) -> Key | None:
        """The link of that secret. Whoever guesses is not let at the store again and again. Where another gateway made
        it, what that one knows of its person has to be known here too."""
        own = self._keys.find("link", secret) is not None
        if not own:
            self._refuse_guesses(request.peer)
        link = await self._keys.take("link", secret)
        if link is not None and not own and self._catch_up is not None:
            await self._catch_up()
        return link

    async def prepare(self, request: Request) -> None:
        """Where a request shows a secret that nobody here knows, hear first what the other gateways did: one of them may
        have made it a moment ago."""
        if self._catch_up is None or self._backoff.wait(request.peer, self._clock.monotonic()):
            return
        token, cookie = self._token(request), self._shown_cookie(request)
        if (token and self._keys.find("operator", token) is None) or (
            cookie and self._keys.find("session", cookie) is None
        ):
            await self._catch_up()

    def enter(self, request: Request) -> Visitor:
        """Who this is; `Unauthorized` for strangers, `Forbidden` for what another page made a browser send."""
        token = self._token(request)
        if token is not None:
            return self._program(request, token)
        session = self.session(request)
        if session is None:
            raise Unauthorized(NO_LOGIN)
        shown = (request.header(KEY_HEADER) or b"").decode("latin-1")
        if not hmac.compare_digest(digest(shown).hex(), str(session.body.get("key"))):
            self._failed(request.peer)
            raise Unauthorized("The session's key is missing. Open a fresh link from `agent-gate login`")
        if request.method not in ("GET", "HEAD") and not same_origin(request):
            raise Forbidden("Only the operator's own page may send this; its Origin is missing or foreign")
        return Visitor(session.person, "page", session.name)

    def still(self, request: Request) -> bool:
        """Whether a request that was let in would be let in now: its session or token may be gone."""
        try:
            self.enter(request)
        except GatewayError:
            return False
        return True

    def _shown_cookie(self, request: Request) -> str | None:
        cookie = cookie_of(request, self.cookie(encrypted=True))
        if cookie is None and not request.secure:
            cookie = cookie_of(request, self.cookie(encrypted=False))
        return cookie

    def session(self, request: Request) -> Key | None:
        """The session of the request's cookie, if it is live."""
        cookie = self._shown_cookie(request)
        found = self._keys.find("session", cookie) if cookie else None
        if found is None or found.body.get("expires_at", 0) <= self._clock.now():
            return None
        return found if self._known(found.person) else None

    async def leave(self, visitor: Visitor) -> None:
        if visitor.session is not None:
            await self._keys.revoke("session", visitor.session)

    def _token(self, request: Request) -> str | None:
        """The token that a program shows; empty where its header has none."""
        header = request.header(b"authorization")
        if header is None:
            return None
        scheme, _, token = header.decode("latin-1").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    def _program(self, request: Request, token: str) -> Visitor:
        found = self._keys.find("operator", token)
        if found is None or not self._known(found.person):
            self._failed(request.peer)
            raise Unauthorized("This is no operator token. `agent-gate operators` makes one")
        return Visitor(found.person, "api")

    def _failed(self, peer: str) -> None:
        self._refuse_guesses(peer)
        self._backoff.failed(peer, self._clock.monotonic())

    def _refuse_guesses(self, peer: str) -> None:
        self._backoff.refuse(peer, self._clock.monotonic(), "failed logins")

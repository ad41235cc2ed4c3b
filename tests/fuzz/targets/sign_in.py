"""What strangers send to the four endpoints of a sign-in: answered, with nothing of it sent on, and nobody let in."""

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.fuzz.fuzzing import Target

from agent_gate.access.jwt.once import UsedOnce
from agent_gate.access.oidc.flows import SealedFlows
from agent_gate.access.sign_in.assertions import ClientAssertions
from agent_gate.access.sign_in.clients import SignInClient, SignInClients
from agent_gate.access.sign_in.consents import SignInsBegun
from agent_gate.access.sign_in.desk import SignInDesk
from agent_gate.access.sign_in.documents import ClientDocuments
from agent_gate.access.sign_in.families import SignedIn
from agent_gate.access.sign_in.redirects import check_redirect
from agent_gate.core.call import Caller
from agent_gate.core.ports import SystemClock
from agent_gate.errors import GatewayError, InvalidArgs
from agent_gate.net.http import Request, header_lines
from agent_gate.surfaces.oauth.authorize import AuthorizePages
from agent_gate.surfaces.oauth.endpoints import OAuthEndpoints
from agent_gate.surfaces.oauth.grants import AssertionGrant
from agent_gate.surfaces.oauth.logins import LoginPages
from agent_gate.surfaces.oauth.surface import OAuthSurface
from agent_gate.vault.oauth.reach import AuthorizationFault

ISSUER = "https://gate.example"
KNOWN = SignInClient(
    id="known", name="Known", redirect_uris=("https://a.example/cb", "http://localhost/cb", "app.x://cb")
)
PATHS = ("/authorize", "/token", "/register", "/revoke", "/authorize/wait", "/.well-known/x", "/invite/x")
LOGIN_PATHS, LOGIN_FROM = ("/oidc/callback", "/oidc/logout"), 224


class EmptyStore:
    """Has nothing, and keeps nothing."""

    async def read(self, _sql: str, _params: tuple[Any, ...] = ()) -> list[Any]:
        return [[0]] if "COUNT" in _sql else []

    async def write(self, *statements: Any) -> list[int]:
        return [1 for _ in statements]


class NoWeb:
    async def get(self, *_given: Any) -> Any:
        raise AuthorizationFault("nothing is asked of the network here")


class KnowsOne(SignInClients):
    async def find(self, client_id: str, address: str = "") -> SignInClient:
        return KNOWN if client_id == KNOWN.id else await super().find(client_id, address)


async def never(*_given: Any) -> Any:
    raise InvalidArgs("no question is put here")


def surface() -> OAuthSurface:
    store, clock = EmptyStore(), SystemClock()
    clients = KnowsOne(store, clock, ClientDocuments(NoWeb(), clock))  # type: ignore[arg-type]
    signed_in = SignedIn(store, clock, lambda _resource: "/mcp", lambda: Caller(name=""))  # type: ignore[arg-type]
    begun = SignInsBegun(store, clock, b"k" * 32)  # type: ignore[arg-type]
    desk = SignInDesk(clients, begun, signed_in, clock, lambda _name: False)
    inbox, calls = SimpleNamespace(get=never), SimpleNamespace(ask_to_let_in=never, let_in=never)
    nobody = SimpleNamespace(provider=lambda: None, sign_ins=None, end_by_provider=never)
    logins = LoginPages(desk, calls, clock, nobody, SealedFlows(b"k" * 32))
    provers = ClientAssertions(UsedOnce(store, clock), clock, NoWeb())  # type: ignore[arg-type]
    asserting = SimpleNamespace(
        assertions=SimpleNamespace(read=never), client_assertions=provers, sign_ins=None
    )
    endpoints = OAuthEndpoints(desk, provers, AssertionGrant(desk, calls, clock, asserting))
    pages = AuthorizePages(desk, calls, inbox, clock, b"k" * 32, lambda _request, _id: None, logins)
    return OAuthSurface(lambda: ISSUER, pages, endpoints)


SURFACE = surface()
LOOP = asyncio.new_event_loop()


def run(data: bytes) -> None:
    """The first byte chooses endpoint and method; then the query, the cookie and the body, each in a line."""
    choice, _, rest = data[:1], data[:0], data[1:]
    query, cookie, *body = rest.split(b"\n", 2) if rest.count(b"\n") >= 2 else (rest, b"", b"")
    number = choice[0] if choice else 0
    path = LOGIN_PATHS[number % 2] if number >= LOGIN_FROM else PATHS[number % len(PATHS)]
    target = path.encode() + b"?" + bytes(c for c in query if 0x20 < c < 0x7F)
    fields = {b"host": b"gate.example", b"origin": ISSUER.encode()}
    if cookie:
        fields[b"cookie"] = bytes(c for c in cookie if c >= 0x20)
    method = ("GET", "POST", "OPTIONS", "PUT")[number // len(PATHS) % 4]
    request = Request(method, target, fields, b"".join(body), peer="192.0.2.1")
    answer = LOOP.run_until_complete(SURFACE.handle(request))
    assert 200 <= answer.status < 500, (answer.status, path)
    header_lines(answer.headers)
    told = dict(answer.headers)
    if b"location" in told and not told[b"location"].startswith(b"/authorize"):
        sent = told[b"location"].decode().partition("?")[0]
        try:
            check_redirect(sent)
        except GatewayError:
            raise AssertionError(f"an answer went to {sent}") from None
        assert sent.startswith(
            ("http://localhost", "http://127.0.0.1", "http://[::1]", "https://a.example", "app.x:")
        )
    assert b"access_token" not in answer.body
    if path in ("/authorize", "/authorize/wait") and answer.body[:9] == b"<!doctype":
        assert b"<script" not in answer.body.lower()


TARGET = Target("sign_in", run)

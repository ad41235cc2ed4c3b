"""One OpenID provider: where a browser is sent, and what a code that comes back proves."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode

import msgspec

from agent_gate.access.jwt.claims import Expected, audiences, check_claims, text_at, texts_at
from agent_gate.access.jwt.keys import IssuerKeys
from agent_gate.access.jwt.once import UsedOnce
from agent_gate.access.jwt.reading import BadToken, SignedClaims, kind_of, read_token
from agent_gate.core.ports import Clock
from agent_gate.errors import Unauthorized, UpstreamError
from agent_gate.vault.oauth.authorize import FlowProof, authorization_url, check_issuer
from agent_gate.vault.oauth.clients import ConfiguredClient, OAuthClient, chosen_method
from agent_gate.vault.oauth.discovery import OPENID, AuthorizationServer, read_server
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Web
from agent_gate.vault.oauth.tokens import OAuthTokens, TokenEndpoint

FRESH = 3600.0
LEEWAY = 60.0
EVENT = "http://schemas.openid.net/event/backchannel-logout"
NO_NONCE = "The provider's answer is not for this login. Begin again"


class OidcClient(Protocol):
    """The provider as the operator names it."""

    @property
    def issuer(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_secret(self) -> str: ...
    @property
    def scopes(self) -> tuple[str, ...]: ...
    @property
    def person(self) -> str: ...
    @property
    def groups(self) -> str: ...


class LoginFlow(msgspec.Struct, frozen=True):
    """What a browser carries, sealed, from the beginning of a login to its end."""

    issuer: str
    state: str
    verifier: str
    nonce: str
    redirect_uri: str
    until: float

    def __repr__(self) -> str:
        return "LoginFlow(…)"


@dataclass(frozen=True, slots=True)
class Vouched:
    """Somebody whom the provider vouches for: `name` is what the operator's claim calls them."""

    issuer: str
    subject: str
    session: str
    name: str
    groups: frozenset[str]
    tokens: OAuthTokens


@dataclass(frozen=True, slots=True)
class Ended:
    """Whose sessions the provider says are over: all of `subject`, or those of one `session` of its own."""

    subject: str
    session: str

    def means(self, subject: str, session: str) -> bool:
        """Whether a login of this subject is over; one of which the provider named no session ends with its subject."""
        if self.session and session:
            return session == self.session
        return bool(self.subject) and subject == self.subject


class OidcProvider:
    """Asks one provider as one client. What it says of itself is read again every hour."""

    def __init__(self, web: Web, clock: Clock, client: OidcClient) -> None:
        self._web, self._clock, self.client = web, clock, client
        self._reach = Reach.of(client.issuer)
        self._server: AuthorizationServer | None = None
        self._read_at = 0.0
        self._keys: IssuerKeys | None = None

    async def describe(self) -> AuthorizationServer:
        """What the provider says of itself, under the very name that the operator gave it."""
        now = self._clock.monotonic()
        if self._server is None or now - self._read_at >= FRESH:
            issuer = self.client.issuer
            answer = await self._web.get(f"{issuer.rstrip('/')}{OPENID}", self._reach, "OpenID provider")
            if answer.status != 200:
                raise AuthorizationFault(f"{issuer} does not describe itself (status {answer.status})")
            found = read_server(answer.json("OpenID provider"), issuer)
            if found.challenge_methods is None:
                # Some take PKCE without saying so; state and nonce bind the login to its browser as well.
                found = msgspec.structs.replace(found, challenge_methods=("S256",))
            self._keep(found, now)
            return found
        return self._server

    def _keep(self, server: AuthorizationServer, now: float) -> None:
        if server.jwks_url is None:
            raise AuthorizationFault(f"{server.issuer} does not say where its keys are")
        if self._keys is None or self._server is None or self._server.jwks_url != server.jwks_url:
            named = Reach.of(server.jwks_url, server.issuer)
            self._keys = IssuerKeys(self._web, self._clock, server.issuer, server.jwks_url, named)
        self._server, self._read_at = server, now

    def _client_at(self, server: AuthorizationServer) -> OAuthClient:
        said = ConfiguredClient(
            client_id=self.client.client_id, client_secret=self.client.client_secret or None
        )
        return OAuthClient(
            issuer=server.issuer,
            client_id=self.client.client_id,
            client_secret=said.client_secret,
            method=chosen_method(server, said),
        )

    def _endpoint(self, server: AuthorizationServer) -> TokenEndpoint:
        return TokenEndpoint(self._web, server, self._client_at(server), self._reach)

    async def begin(self, redirect_uri: str, seconds: float) -> tuple[str, LoginFlow]:
        """Where to send a browser, and what it has to bring back."""
        server, proof, nonce = await self.describe(), FlowProof.new(), secrets.token_urlsafe(32)
        scope = " ".join(dict.fromkeys(("openid", *self.client.scopes)))
        url = authorization_url(server, self._client_at(server), proof, redirect_uri, scope, None)
        until = self._clock.now() + seconds
        flow = LoginFlow(server.issuer, proof.state, proof.verifier, nonce, redirect_uri, until)
        return f"{url}&nonce={nonce}", flow

    async def finish(self, flow: LoginFlow, came: Mapping[str, str]) -> Vouched:
        """Who came back; raises `Unauthorized` for anything but an answer of this provider to this very login."""
        state = came.get("state", "")
        if flow.until <= self._clock.now() or not hmac.compare_digest(state.encode(), flow.state.encode()):
            raise Unauthorized("This login was not begun in this browser, or too long ago. Begin again")
        server = await self.describe()
        if flow.issuer != server.issuer:
            raise Unauthorized("This login was begun at another provider. Begin again")
        check_issuer(server, came.get("iss"))
        if came.get("error") or not came.get("code"):
            raise Unauthorized("The provider said no. Nobody was logged in")
        tokens = await self._endpoint(server).redeem(came["code"], flow.verifier, flow.redirect_uri)
        claims = await self._check_id(tokens, server)
        if not hmac.compare_digest(text_at(claims, "nonce").encode(), flow.nonce.encode()):
            raise BadToken(NO_NONCE)
        return await self._read_person(claims, tokens, server)

    async def renew(self, tokens: OAuthTokens, subject: str) -> tuple[Vouched | None, OAuthTokens]:
        """The same person as the provider sees them now, None where its answer does not tell; and its new tokens.

        `OAuthRefusal` where the provider does not vouch for them any more."""
        server = await self.describe()
        fresh = await self._endpoint(server).refresh(tokens)
        said = await self._ask_more(fresh, server, subject)
        if fresh.id_token is not None and fresh.id_token != tokens.id_token:
            said |= await self._check_id(fresh, server)
        if said and said.get("sub") != subject:
            raise BadToken("The provider answered with another person")
        return self._vouch(said, fresh, server) if said else None, fresh

    async def _check_id(self, tokens: OAuthTokens, server: AuthorizationServer) -> dict[str, Any]:
        if tokens.id_token is None:
            raise BadToken("The provider did not say who logged in (it gave no ID token)")
        token = await self._check_signed(tokens.id_token, ("", "jwt"))
        self._check_for_us(token.claims, server)
        if not text_at(token.claims, "sub"):
            raise BadToken("The provider did not say who logged in")
        return token.claims

    def _check_for_us(self, claims: Mapping[str, Any], server: AuthorizationServer) -> float:
        """When a token that is for this client ends."""
        expected = Expected(issuer=server.issuer, audience=self.client.client_id, leeway=LEEWAY)
        until = check_claims(claims, expected, self._clock.now())
        party = claims.get("azp")
        if (party is not None or len(audiences(claims)) > 1) and party != self.client.client_id:
            raise BadToken("The provider's answer was made for another client")
        return until

    async def _check_signed(self, text: str, kinds: tuple[str, ...]) -> SignedClaims:
        token = read_token(text)
        if kind_of(token) not in kinds:
            raise BadToken("The provider's answer is of another kind")
        assert self._keys is not None
        if self._keys.lack(token):
            await self._keys.fetch()
        self._keys.check(token)
        return token

    async def _read_person(
        self, claims: Mapping[str, Any], tokens: OAuthTokens, server: AuthorizationServer
    ) -> Vouched:
        client = self.client
        lacking = not text_at(claims, client.person) or (
            client.groups and not texts_at(claims, client.groups)
        )
        more = await self._ask_more(tokens, server, text_at(claims, "sub")) if lacking else {}
        return self._vouch({**more, **claims}, tokens, server)

    def _vouch(self, said: Mapping[str, Any], tokens: OAuthTokens, server: AuthorizationServer) -> Vouched:
        client = self.client
        name = text_at(said, client.person)
        if not name:
            raise BadToken(f"The provider says nothing of {client.person}, by which people are known here")
        if client.person == "email" and said.get("email_verified") is not True:
            raise BadToken(
                "The provider does not say that it verified this email address; name another claim in auth.oidc.person"
            )
        groups = texts_at(said, client.groups)
        return Vouched(server.issuer, text_at(said, "sub"), text_at(said, "sid"), name, groups, tokens)

    async def _ask_more(
        self, tokens: OAuthTokens, server: AuthorizationServer, subject: str
    ) -> dict[str, Any]:
        """What the provider tells of a person beside the ID token. Who is known by it must not lose their groups because
        it falters."""
        if server.userinfo_url is None:
            return {}
        bearer = (b"authorization", f"Bearer {tokens.access_token}".encode())
        answer = await self._web.get(server.userinfo_url, self._reach, "provider's user info", (bearer,))
        if answer.status >= 500 or answer.status == 429:
            raise UpstreamError(f"The provider's user info answered {answer.status}. Try again later")
        said = answer.json("provider's user info") if answer.status == 200 else {}
        return said if said.get("sub") == subject else {}

    async def read_logout(self, text: str, once: UsedOnce) -> Ended:
        """What a logout token of the provider says has ended; it says so once."""
        server = await self.describe()
        token = await self._check_signed(text, ("", "jwt", "logout+jwt"))
        claims = token.claims
        until = self._check_for_us(claims, server)
        events = claims.get("events")
        if not isinstance(events, dict) or not isinstance(events.get(EVENT), dict) or "nonce" in claims:
            raise BadToken("This token does not end a login")
        ended = Ended(text_at(claims, "sub"), text_at(claims, "sid"))
        if not ended.subject and not ended.session:
            raise BadToken("This token does not say whose login ends")
        await once.use(token, until)
        return ended

    async def check_assertion(self, text: str, kind: str, audience: str) -> tuple[SignedClaims, float]:
        """A token of that kind that the provider signed for this audience, and when it ends."""
        server = await self.describe()
        token = await self._check_signed(text, (kind,))
        expected = Expected(issuer=server.issuer, audience=audience, leeway=LEEWAY)
        return token, check_claims(token.claims, expected, self._clock.now())

    async def end_session_url(self, tokens: OAuthTokens | None, back: str) -> str | None:
        """Where a browser logs out at the provider too; None where there is no such place."""
        server = await self.describe()
        if server.end_session_url is None:
            return None
        said = {"client_id": self.client.client_id, "post_logout_redirect_uri": back}
        if tokens is not None and tokens.id_token is not None:
            said["id_token_hint"] = tokens.id_token
        joint = "&" if "?" in server.end_session_url else "?"
        return f"{server.end_session_url}{joint}{urlencode(said)}"

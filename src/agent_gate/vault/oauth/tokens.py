"""Requests to a token endpoint, and what they give: codes, refresh tokens, devices, secrets, assertions."""

import base64
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from agent_gate.core.call import new_id
from agent_gate.net.http import Header
from agent_gate.vault.oauth.clients import OAuthClient
from agent_gate.vault.oauth.discovery import BASIC, AuthorizationServer
from agent_gate.vault.oauth.dpop import NONCE_WANTED, possession
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Web, WebAnswer

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - a name
JWT = "urn:ietf:params:oauth:token-type:jwt"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
ASSERTION_SECONDS = 300
LONGEST_TOKEN = 16 << 10
MOST_SECONDS = 1_000_000_000


class OAuthRefusal(AuthorizationFault):
    """The authorization server said no. `error` is its code, such as `invalid_grant`."""

    def __init__(self, message: str, error: str) -> None:
        super().__init__(message)
        self.error = error


class OAuthTokens(msgspec.Struct, frozen=True, kw_only=True):
    """What an authorization server gave. `expires_at` is wall time; None where it said nothing."""

    access_token: str
    refresh_token: str | None = None
    expires_at: float | None = None
    scope: str | None = None
    id_token: str | None = None
    token_type: str = "Bearer"  # noqa: S105 - a kind

    def __repr__(self) -> str:
        return f"Tokens(until {self.expires_at})"


def client_assertion(client: OAuthClient, private_key: str, audience: str) -> str:
    """A JWT by which a client proves itself: signed with its own key, for this issuer, for five minutes."""
    from joserfc import jwt
    from joserfc.jwk import ECKey, OKPKey, RSAKey

    kinds: list[tuple[Any, str]] = [(ECKey, "ES256"), (OKPKey, "EdDSA"), (RSAKey, "RS256")]
    for kind, algorithm in kinds:
        try:
            key = kind.import_key(private_key)
        except ValueError:
            continue
        now = int(time.time())
        claims = {
            "iss": client.client_id,
            "sub": client.client_id,
            "aud": audience,
            "jti": new_id(),
            "iat": now,
            "exp": now + ASSERTION_SECONDS,
        }
        return jwt.encode({"alg": algorithm}, claims, key, algorithms=[algorithm])
    raise AuthorizationFault("The client's private key is no PEM of an EC, Ed25519 or RSA key")


def prove(
    client: OAuthClient, server: AuthorizationServer, private_key: str | None
) -> tuple[dict[str, str], list[Header]]:
    """What a request carries to show whose it is: form fields and headers."""
    if client.method == "private_key_jwt" and private_key:
        assertion = client_assertion(client, private_key, server.issuer)
        return {
            "client_id": client.client_id,
            "client_assertion_type": ASSERTION,
            "client_assertion": assertion,
        }, []
    if client.method == BASIC and client.client_secret is not None:
        pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
        return {}, [(b"authorization", b"Basic " + base64.b64encode(pair.encode()))]
    fields = {"client_id": client.client_id}
    if client.method == "client_secret_post" and client.client_secret is not None:
        fields["client_secret"] = client.client_secret
    return fields, []


class TokenEndpoint:
    """One client's way to one authorization server's token endpoint."""

    def __init__(
        self,
        web: Web,
        server: AuthorizationServer,
        client: OAuthClient,
        reach: Reach,
        *,
        private_key: str | None = None,
        resource: str | None = None,
        proof_key: str | None = None,
    ) -> None:
        self._web, self._server, self._client, self._reach = web, server, client, reach
        self._private_key, self._resource, self._proof_key = private_key, resource, proof_key

    async def redeem(self, code: str, verifier: str, redirect_uri: str) -> OAuthTokens:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": redirect_uri,
        }
        return await self.ask(form)

    async def refresh(self, tokens: OAuthTokens) -> OAuthTokens:
        """New tokens for the old; what the answer leaves out stays as it was."""
        if tokens.refresh_token is None:
            raise OAuthRefusal("There is no refresh token", "invalid_grant")
        fresh = await self.ask({"grant_type": "refresh_token", "refresh_token": tokens.refresh_token})
        return msgspec.structs.replace(
            fresh,
            refresh_token=fresh.refresh_token or tokens.refresh_token,
            scope=fresh.scope or tokens.scope,
            id_token=fresh.id_token or tokens.id_token,
        )

    async def exchange_credentials(self, scope: str | None) -> OAuthTokens:
        return await self.ask({"grant_type": "client_credentials", **({"scope": scope} if scope else {})})

    async def exchange_assertion(self, assertion: str, scope: str | None = None) -> OAuthTokens:
        """A signed statement of another issuer for tokens of this one (RFC 7523)."""
        form = {"grant_type": JWT_BEARER, "assertion": assertion, **({"scope": scope} if scope else {})}
        return await self.ask(form)

    async def exchange(
        self, subject: str, audience: str, scope: str | None, wanted: str, kind: str
    ) -> OAuthTokens:
        """One token for another (RFC 8693): who the caller is here, for what another server takes."""
        form = {
            "grant_type": EXCHANGE,
            "requested_token_type": wanted,
            "audience": audience,
            "subject_token": subject,
            "subject_token_type": kind,
            **({"scope": scope} if scope else {}),
        }
        return await self.ask(form)

    async def ask(self, form: Mapping[str, str]) -> OAuthTokens:
        answer = await self._post(form)
        if self._proof_key is not None and (nonce := nonce_wanted(answer)):
            answer = await self._post(form, nonce)
        return read_tokens(answer, self._server.issuer)

    async def _post(self, form: Mapping[str, str], nonce: str = "") -> WebAnswer:
        url = self._server.token_url
        if url is None:
            raise AuthorizationFault(f"{self._server.issuer} has no token endpoint")
        fields, headers = prove(self._client, self._server, self._private_key)
        if self._proof_key is not None:
            headers.append((b"dpop", possession(self._proof_key, "POST", url, nonce=nonce).encode()))
        resource = {"resource": self._resource} if self._resource else {}
        return await self._web.post_form(
            url, {**form, **resource, **fields}, self._reach, "token endpoint", headers
        )

    async def revoke(self, tokens: OAuthTokens) -> None:
        """Take the tokens back (RFC 7009); the refresh token's end is the access token's too."""
        if self._server.revoke_url is None:
            return
        fields, headers = prove(self._client, self._server, self._private_key)
        token, hint = (
            (tokens.refresh_token, "refresh_token")
            if tokens.refresh_token
            else (tokens.access_token, "access_token")
        )
        sent = {"token": token, "token_type_hint": hint, **fields}
        await self._web.post_form(self._server.revoke_url, sent, self._reach, "revocation endpoint", headers)


def nonce_wanted(answer: WebAnswer) -> str:
    """The value that the server wants to see in a proof of possession before it answers; empty where it wants none."""
    nonce = next((value for name, value in answer.headers if name.lower() == b"dpop-nonce"), b"")
    return (
        nonce.decode("latin-1")
        if answer.status in (400, 401) and NONCE_WANTED.encode() in answer.body
        else ""
    )


def read_tokens(answer: WebAnswer, issuer: str) -> OAuthTokens:
    body = answer.json("token endpoint")
    if answer.status != 200:
        raise refusal_of(body, issuer, answer.status)
    access, refresh, lifetime = body.get("access_token"), body.get("refresh_token"), body.get("expires_in")
    if not is_token(access) or not (refresh is None or is_token(refresh)):
        raise AuthorizationFault(f"{issuer} gave no usable token")
    scope, id_token = body.get("scope"), body.get("id_token")
    return OAuthTokens(
        access_token=str(access),
        refresh_token=refresh or None,
        expires_at=end_of_lifetime(lifetime),
        scope=scope if isinstance(scope, str) else None,
        id_token=id_token if isinstance(id_token, str) else None,
        token_type=str(body.get("token_type") or "Bearer"),
    )


def end_of_lifetime(seconds: object) -> float | None:
    """When tokens end that live so long; some servers write the number as text."""
    if isinstance(seconds, str) and seconds.isdigit():
        seconds = int(seconds)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < MOST_SECONDS:
        return None
    return time.time() + seconds


def is_token(value: object) -> bool:
    """Whether a value can stand in a header."""
    return (
        isinstance(value, str) and 0 < len(value) <= LONGEST_TOKEN and value.isascii() and value.isprintable()
    )


def refusal_of(body: Mapping[str, Any], issuer: str, status: int) -> OAuthRefusal:
    """The server's own code; of its words only what cannot deceive: the code is one of a known form."""
    error = body.get("error")
    code = (
        error if isinstance(error, str) and error.replace("_", "").isalnum() and len(error) <= 64 else "error"
    )
    return OAuthRefusal(f"{issuer} refused: {code} (status {status})", code)

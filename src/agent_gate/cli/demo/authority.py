"""A small authorization server for the demo: registration, consent, PKCE, short tokens that rotate, revocation.

It keeps digests of its tokens and never a token, so that a search of the disk finds nothing of it either.
"""

import base64
import html
import secrets
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
from joserfc import jwt
from joserfc.jwk import ECKey

from agent_gate.net.http import Request, Response, json_response
from agent_gate.store.once import replace_whole

TOKEN_SECONDS = 30.0
CODE_SECONDS = 60.0
SCOPE = "notes"
CONSENT_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
STYLE = "body{font:1rem system-ui;max-width:26rem;margin:4rem auto;padding:0 1rem}button,input{font:inherit;margin:.3rem 0}"


def digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()


class Consent(msgspec.Struct, kw_only=True):
    """What one person allowed one client; `refresh` is the digest of the only refresh token that counts."""

    client: str
    person: str
    refresh: str = ""


class AuthorityState(msgspec.Struct, kw_only=True):
    """What outlives the process: clients with their redirect addresses, consents, and access tokens by digest."""

    clients: dict[str, list[str]] = {}
    consents: dict[str, Consent] = {}
    access: dict[str, tuple[str, float]] = {}
    spent: dict[str, str] = {}
    """Refresh tokens that were used, by digest: one that comes again was stolen, and ends its consent."""


@dataclass(frozen=True, slots=True)
class AskedConsent:
    """One request for consent, while its page is open and until its code is redeemed."""

    client: str
    redirect: str
    state: str
    challenge: str
    until: float
    person: str = ""


class NotesAuthority:
    """Answers the paths of an authorization server below `issuer`."""

    def __init__(self, path: Path, seconds: float = TOKEN_SECONDS) -> None:
        self._path, self._seconds, self.issuer = path, seconds, ""
        self._key = ECKey.generate_key("P-256")
        self._state = (
            msgspec.json.decode(path.read_bytes(), type=AuthorityState) if path.exists() else AuthorityState()
        )
        self._asked: dict[str, AskedConsent] = {}
        self._codes: dict[str, AskedConsent] = {}

    def person(self, token: str) -> str | None:
        """Whose token this is, where it is good."""
        consent, until = self._state.access.get(digest(token), ("", 0.0))
        found = self._state.consents.get(consent)
        return found.person if found is not None and time.time() < until else None

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": [SCOPE],
        }

    def handle(self, request: Request) -> Response | None:
        """The answer to one of its paths; None for any other."""
        match request.method, request.path:
            case "GET", "/.well-known/oauth-authorization-server":
                return json_response(200, self.description())
            case "POST", "/register":
                return self._register(msgspec.json.decode(request.body, type=dict[str, Any]))
            case "GET", "/authorize":
                return self._ask(request.params())
            case "POST", "/authorize":
                return self._consent(request.form())
            case "POST", "/token":
                return self._token(request.form())
            case "POST", "/revoke":
                return self._revoke(request.form())
        return None

    def _keep(self) -> None:
        now = time.time()
        self._state.access = {name: one for name, one in self._state.access.items() if one[1] > now}
        replace_whole(self._path, msgspec.json.encode(self._state).decode())

    def _register(self, wanted: dict[str, Any]) -> Response:
        redirects = [one for one in wanted.get("redirect_uris", []) if isinstance(one, str) and loopback(one)]
        if not redirects:
            return json_response(400, {"error": "invalid_redirect_uri"})
        client = secrets.token_urlsafe(12)
        self._state.clients[client] = redirects
        self._keep()
        answer = {"client_id": client, "redirect_uris": redirects, "token_endpoint_auth_method": "none"}
        return json_response(201, answer)

    def _ask(self, asked: dict[str, str]) -> Response:
        """The page of consent, for a client that is known and brings a challenge."""
        client, redirect = asked.get("client_id", ""), asked.get("redirect_uri", "")
        if redirect not in self._state.clients.get(client, []):
            return page(400, "Who asks?", "<p>This client is not registered here.</p>")
        if asked.get("code_challenge_method") != "S256" or not asked.get("code_challenge"):
            return page(400, "No", "<p>A client has to bring a code challenge with S256.</p>")
        ticket = secrets.token_urlsafe(24)
        self._asked[ticket] = AskedConsent(
            client, redirect, asked.get("state", ""), asked["code_challenge"], time.time() + 600
        )
        return page(
            200,
            "Notes of the demo",
            f"<p>agent-gate wants to read and write your notes. It comes back to {html.escape(urlsplit(redirect).netloc)}.</p>"
            f'<form method="post" action="/authorize"><input type="hidden" name="ticket" value="{ticket}">'
            '<label>Your name <input name="name" value="ada" maxlength="40" required></label><br>'
            '<button name="answer" value="allow">Allow</button> <button name="answer" value="deny">Deny</button></form>',
        )

    def _consent(self, form: dict[str, str]) -> Response:
        asked = self._asked.pop(form.get("ticket", ""), None)
        if asked is None or asked.until < time.time():
            return page(400, "Too late", "<p>Begin the sign-in anew.</p>")
        answer = {"state": asked.state, "iss": self.issuer}
        if form.get("answer") != "allow":
            return sent_to(asked.redirect, {"error": "access_denied", **answer})
        code, until = secrets.token_urlsafe(24), time.time() + CODE_SECONDS
        self._codes[digest(code)] = AskedConsent(
            asked.client, asked.redirect, "", asked.challenge, until, form.get("name", "ada")[:40]
        )
        return sent_to(asked.redirect, {"code": code, **answer})

    def _token(self, form: dict[str, str]) -> Response:
        if form.get("client_id", "") not in self._state.clients:
            return json_response(401, {"error": "invalid_client"})
        if form.get("grant_type") == "authorization_code":
            return self._redeem(form)
        if form.get("grant_type") == "refresh_token":
            return self._refresh(form)
        return json_response(400, {"error": "unsupported_grant_type"})

    def _redeem(self, form: dict[str, str]) -> Response:
        asked = self._codes.pop(digest(form.get("code", "")), None)
        whole = sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(whole).decode().rstrip("=")
        if asked is None or asked.until < time.time():
            return json_response(400, {"error": "invalid_grant"})
        if (asked.client, asked.redirect) != (form["client_id"], form.get("redirect_uri")):
            return json_response(400, {"error": "invalid_grant"})
        if not secrets.compare_digest(challenge, asked.challenge):
            return json_response(400, {"error": "invalid_grant"})
        number = secrets.token_hex(8)
        self._state.consents[number] = Consent(client=asked.client, person=asked.person)
        return self._tokens(number)

    def _refresh(self, form: dict[str, str]) -> Response:
        shown = digest(form.get("refresh_token", ""))
        if (stolen := self._state.spent.get(shown)) is not None:
            self._end(stolen)
            return json_response(400, {"error": "invalid_grant"})
        number = next((name for name, one in self._state.consents.items() if one.refresh == shown), None)
        if number is None or self._state.consents[number].client != form["client_id"]:
            return json_response(400, {"error": "invalid_grant"})
        self._state.spent[shown] = number
        return self._tokens(number)

    def _tokens(self, number: str) -> Response:
        access, refresh = f"demo_at_{secrets.token_urlsafe(24)}", f"demo_rt_{secrets.token_urlsafe(24)}"
        self._state.access[digest(access)] = (number, time.time() + self._seconds)
        self._state.consents[number].refresh = digest(refresh)
        self._keep()
        answer = {
            "access_token": access,
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": int(self._seconds),
            "scope": SCOPE,
            "id_token": self._id_token(self._state.consents[number]),
        }
        return json_response(200, answer, ((b"cache-control", b"no-store"),))

    def _id_token(self, consent: Consent) -> str:
        """Who signed in, for people's eyes."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": consent.client,
            "sub": consent.person,
            "name": consent.person,
            "iat": now,
            "exp": now + 300,
        }
        return jwt.encode({"alg": "ES256"}, claims, self._key)

    def _revoke(self, form: dict[str, str]) -> Response:
        shown = digest(form.get("token", ""))
        number = next((name for name, one in self._state.consents.items() if one.refresh == shown), None)
        if number is not None:
            self._end(number)
        return json_response(200, {})

    def _end(self, number: str) -> None:
        """Take a consent back, with every token that came of it."""
        self._state.consents.pop(number, None)
        self._state.spent = {name: one for name, one in self._state.spent.items() if one != number}
        self._keep()


def loopback(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")


def sent_to(redirect: str, answer: dict[str, str]) -> Response:
    location = f"{redirect}{'&' if urlsplit(redirect).query else '?'}{urlencode(answer)}"
    return Response(303, b"", ((b"location", location.encode()), *CONSENT_HEADERS))


def page(status: int, title: str, body: str) -> Response:
    head = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    )
    return Response(
        status, f"{head}<h1>{title}</h1>{body}".encode(), CONSENT_HEADERS, b"text/html; charset=utf-8"
    )

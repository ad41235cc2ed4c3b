"""`/token`, `/register` and `/revoke`: for programs, with nothing but what stands in the request."""

import base64
import binascii
from typing import Any
from urllib.parse import unquote

from agent_gate.access.sign_in.assertions import ClientAssertions, claimed_client
from agent_gate.access.sign_in.clients import GRANTS, JWT_BEARER, PRIVATE_KEY
from agent_gate.access.sign_in.desk import SignInDesk
from agent_gate.access.sign_in.families import TokenPair
from agent_gate.access.sign_in.faults import SignInFault, told
from agent_gate.access.sign_in.request import SCOPE, Audience
from agent_gate.core.strict import MalformedJson, strict_json
from agent_gate.errors import GatewayError
from agent_gate.net.http import Header, Request, Response, json_response, parse_query, refusal
from agent_gate.net.media import FORM, refuse_media
from agent_gate.surfaces.oauth.grants import AssertionGrant
from agent_gate.surfaces.oauth.open_to_all import CORS

MOST_BODY = 16 << 10
NO_STORE: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
HEADERS = (*CORS, *NO_STORE)


class OAuthEndpoints:
    """Each answers in JSON, errors too, in the words that clients know."""

    def __init__(self, desk: SignInDesk, clients: ClientAssertions, assertions: AssertionGrant) -> None:
        self._desk, self._clients, self._assertions = desk, clients, assertions
        self._answers = {"/token": self._give_token, "/register": self._register, "/revoke": self._revoke}

    async def handle(self, issuer: str, request: Request) -> Response:
        if request.method != "POST":
            return refusal(405, "INVALID_ARGS", "Send this with POST", (*CORS, (b"allow", b"POST")))
        if len(request.body) > MOST_BODY:
            return refusal(413, "INVALID_ARGS", "The body is larger than 16 KiB", CORS)
        try:
            return await self._answers[request.path](issuer, request)
        except GatewayError as error:
            return refuse(told(error))

    async def _give_token(self, issuer: str, request: Request) -> Response:
        form = read_form(request)
        client_id, audience = client_of(request, form), Audience(issuer)
        client = await self._desk.clients.find(client_id, request.peer)
        proving = await self._clients.check(client, form, issuer, request.peer)
        audience.meant(form.get("resource"))
        kind = form.get("grant_type")
        if kind == "authorization_code":
            said = (form.get("code", ""), client_id, form.get("redirect_uri"), form.get("code_verifier", ""))
            pair = await self._desk.redeem(*said, proving)
        elif kind == "refresh_token":
            pair = await self._desk.signed_in.refresh(form.get("refresh_token", ""), client_id, proving)
        elif kind == JWT_BEARER:
            pair = await self._assertions.redeem(client, form, audience, request.peer, proving)
        else:
            raise SignInFault("unsupported_grant_type", f"Offered are {' and '.join(GRANTS)}")
        return json_response(200, token_answer(pair), HEADERS)

    async def _register(self, _issuer: str, request: Request) -> Response:
        try:
            asked = strict_json(request.body)
        except MalformedJson:
            asked = None
        if not isinstance(asked, dict):
            raise SignInFault("invalid_client_metadata", "The body must be a JSON object")
        client = await self._desk.clients.register(asked, request.peer)
        answer: dict[str, Any] = {
            "client_id": client.id,
            "redirect_uris": client.redirect_uris,
            "grant_types": [*GRANTS, *([JWT_BEARER] if client.proves_itself else [])],
            "response_types": ["code"],
            "token_endpoint_auth_method": PRIVATE_KEY if client.proves_itself else "none",
            **({"jwks": client.keys} if client.keys else {}),
            **({"jwks_uri": client.keys_url} if client.keys_url else {}),
            "scope": SCOPE,
            **({"client_name": client.name} if client.name else {}),
        }
        return json_response(201, answer, HEADERS)

    async def _revoke(self, _issuer: str, request: Request) -> Response:
        form = read_form(request)
        if not form.get("token"):
            raise SignInFault("invalid_request", "token is missing")
        await self._desk.signed_in.revoke_token(form["token"], form.get("client_id") or None)
        return json_response(200, {}, HEADERS)


def read_form(request: Request) -> dict[str, str]:
    if refuse_media(request, FORM) is not None:
        raise SignInFault("invalid_request", "The body must be a form: application/x-www-form-urlencoded")
    try:
        return parse_query(request.body.decode("ascii"))
    except UnicodeDecodeError:
        raise SignInFault("invalid_request", "The form is not ASCII; write other characters as %XX") from None


def client_of(request: Request, form: dict[str, str]) -> str:
    """Clients have no secret here; some send their id as a user without one all the same."""
    header = request.header(b"authorization") or b""
    if header[:6].lower() == b"basic ":
        try:
            user, _, secret = base64.b64decode(header[6:], validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            user, secret = "", "?"
        if secret or (form.get("client_id") or unquote(user)) != unquote(user):
            raise SignInFault("invalid_client", "Clients have no secret here; send client_id alone", 401)
        return unquote(user)
    named = form.get("client_id") or claimed_client(form)
    if not named:
        raise SignInFault("invalid_request", "client_id is missing")
    return named


def token_answer(pair: TokenPair) -> dict[str, Any]:
    return {
        "access_token": pair.access,
        "token_type": "Bearer",
        "expires_in": int(pair.seconds),
        **({"refresh_token": pair.refresh} if pair.refresh else {}),
        "scope": pair.scope,
    }


def refuse(fault: SignInFault) -> Response:
    headers: tuple[Header, ...] = HEADERS
    if fault.retry_after is not None:
        headers = (*headers, (b"retry-after", b"%d" % max(1, round(fault.retry_after))))
    if fault.answers == 401:
        headers = (*headers, (b"www-authenticate", b'Basic realm="agent-gate"'))
    body = {"error": fault.error, "error_description": fault.message}
    return json_response(fault.answers, body, headers)

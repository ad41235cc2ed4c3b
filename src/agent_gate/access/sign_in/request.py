"""What a client asks for at `/authorize`, checked before anybody sees it."""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Any

import msgspec

from agent_gate.access.sign_in.clients import SignInClient
from agent_gate.access.sign_in.faults import SignInFault
from agent_gate.access.sign_in.redirects import is_among

MCP_PATHS = ("/mcp", "/mcp/full", "/mcp/proxy", "/mcp/gateway")
SCOPE = "mcp"
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
NAMESPACE = re.compile(r"[a-z0-9_-]{1,64}")
LONGEST_STATE = 2048
MOST_NAMESPACES = 50
CARRIED = (
    "response_type",
    "client_id",
    "redirect_uri",
    "state",
    "scope",
    "resource",
    "code_challenge",
    "code_challenge_method",
)
"""The parameters that count; all others are left out."""


class AskedFor(msgspec.Struct, frozen=True, kw_only=True):
    """One request to come in. `namespaces` None means all that a person will give."""

    client_id: str
    client_name: str
    client: str
    redirect_uri: str
    state: str | None
    challenge: str
    resource: str
    namespaces: tuple[str, ...] | None

    def digest(self) -> str:
        return sha256(msgspec.json.encode(self)).hexdigest()


@dataclass(frozen=True, slots=True)
class Audience:
    """The resources of this gateway, under the address that documents carry."""

    issuer: str

    def resource(self, path: str = "/mcp") -> str:
        return f"{self.issuer}{path}"

    def meant(self, resource: str | None) -> str:
        """The resource that a client names; none means `/mcp`, and a slash at the end is forgiven."""
        if not resource:
            return self.resource()
        plain = resource.removesuffix("/")
        if plain == self.issuer:
            return self.resource()
        if plain not in {self.resource(path) for path in MCP_PATHS}:
            raise SignInFault("invalid_target", f"This gateway gives tokens for {self.resource()} alone")
        return plain


def redirect_of(client: SignInClient, params: Mapping[str, str]) -> str:
    """Where answers go. Until this is known to be the client's own, nothing is sent anywhere."""
    uri = params.get("redirect_uri")
    if uri is None and len(client.redirect_uris) == 1:
        return client.redirect_uris[0]
    if uri is None or not is_among(uri, client.redirect_uris):
        raise SignInFault(
            "invalid_request", "The address for the answer is not one that this client registered"
        )
    return uri


def read_request(
    client: SignInClient, redirect_uri: str, params: Mapping[str, str], audience: Audience
) -> AskedFor:
    """The request of a client whose redirect address is known to be its own."""
    if params.get("response_type") != "code":
        raise SignInFault("unsupported_response_type", "Only response_type=code is offered")
    challenge = params.get("code_challenge", "")
    if params.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(challenge):
        raise SignInFault("invalid_request", "A code_challenge with code_challenge_method=S256 is needed")
    state = params.get("state")
    if state is not None and (len(state) > LONGEST_STATE or not state.isprintable()):
        raise SignInFault("invalid_request", "state is longer than 2048 characters, or not text")
    return AskedFor(
        client_id=client.id,
        client_name=client.name,
        client=client.slug(redirect_uri),
        redirect_uri=redirect_uri,
        state=state,
        challenge=challenge,
        resource=audience.meant(params.get("resource")),
        namespaces=wanted_namespaces(params.get("scope", "")),
    )


def wanted_namespaces(scope: str) -> tuple[str, ...] | None:
    """`mcp:notes` names a namespace; without any such scope all are asked for. Others are left out."""
    prefix = f"{SCOPE}:"
    named = [one.removeprefix(prefix) for one in scope.split() if one.startswith(prefix)]
    found = sorted({one for one in named if NAMESPACE.fullmatch(one)})[:MOST_NAMESPACES]
    return tuple(found) or None


def scope_of(namespaces: Any) -> str:
    """What a token is good for, as scopes."""
    if namespaces is None:
        return SCOPE
    return " ".join([SCOPE, *(f"{SCOPE}:{name}" for name in sorted(namespaces))])


def proves(verifier: str, challenge: str) -> bool:
    """Whether this is the secret behind the challenge (PKCE, S256)."""
    if not VERIFIER.fullmatch(verifier):
        return False
    made = base64.urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")
    return compare_digest(made, challenge)

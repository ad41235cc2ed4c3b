"""The address at which a person gives consent, and the proof that what comes back belongs to it."""

import base64
import secrets
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urlencode, urlsplit

from agent_gate.vault.oauth.clients import OAuthClient
from agent_gate.vault.oauth.discovery import AuthorizationServer
from agent_gate.vault.oauth.reach import AuthorizationFault, check_url

STATE_BYTES, VERIFIER_BYTES = 32, 48


@dataclass(frozen=True, slots=True)
class FlowProof:
    """Two random values of one flow: the state comes back with the code, the verifier goes with it to be redeemed."""

    state: str
    verifier: str

    @classmethod
    def new(cls) -> "FlowProof":
        return cls(secrets.token_urlsafe(STATE_BYTES), secrets.token_urlsafe(VERIFIER_BYTES))

    @property
    def challenge(self) -> str:
        digest = sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def __repr__(self) -> str:
        return "FlowProof(…)"


def authorization_url(
    server: AuthorizationServer,
    client: OAuthClient,
    proof: FlowProof,
    redirect_uri: str,
    scope: str | None,
    resource: str | None,
) -> str:
    if server.authorize_url is None:
        raise AuthorizationFault(f"{server.issuer} has no page at which a person could consent")
    server.check_pkce()
    asked = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "state": proof.state,
        "code_challenge": proof.challenge,
        "code_challenge_method": "S256",
        **({"scope": scope} if scope else {}),
        **({"resource": resource} if resource else {}),
    }
    joint = "&" if urlsplit(server.authorize_url).query else "?"
    return check_url(f"{server.authorize_url}{joint}{urlencode(asked)}", "consent page")


def check_issuer(server: AuthorizationServer, said: str | None) -> None:
    """RFC 9207: whoever says that it names itself must, and must be the one who was asked. Letter by letter."""
    if said is None and not server.says_issuer:
        return
    if said != server.issuer:
        raise AuthorizationFault(
            "The answer came from another authorization server than the one that was asked"
        )


def chosen_scope(
    configured: tuple[str, ...],
    challenged: str | None,
    resource: tuple[str, ...],
    server: AuthorizationServer,
) -> str | None:
    """What to ask for: the operator's words, else the challenge's, else the resource's; a refresh where offered."""
    wanted = configured or tuple((challenged or "").split()) or resource
    if "offline_access" in server.scopes and "offline_access" not in wanted:
        wanted = (*wanted, "offline_access")
    return " ".join(dict.fromkeys(wanted)) or None


def joined_scope(earlier: str | None, challenged: str | None) -> str | None:
    """For a step up: what was asked before and what is missing."""
    return " ".join(dict.fromkeys([*(earlier or "").split(), *(challenged or "").split()])) or None

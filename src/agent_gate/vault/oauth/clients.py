"""Who the gateway is to an authorization server: registered beforehand, by a document of its own, or on the spot."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from agent_gate.net.addresses import is_loopback
from agent_gate.vault.oauth.discovery import BASIC, AuthorizationServer
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Web

NAME = "agent-gate"
KNOWN_METHODS = ("private_key_jwt", BASIC, "client_secret_post", "none")


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True):
    """One identity at one issuer. It is never shown to another issuer; a client document's id is the exception."""

    issuer: str
    client_id: str
    client_secret: str | None = None
    method: str = "none"
    redirect_uri: str | None = None

    def __repr__(self) -> str:
        return f"OAuthClient({self.client_id} at {self.issuer})"


@dataclass(frozen=True, slots=True)
class ConfiguredClient:
    """What the operator wrote down. `private_key` is a PEM for signed assertions."""

    client_id: str | None = None
    client_secret: str | None = None
    private_key: str | None = None
    document_url: str | None = None

    def __repr__(self) -> str:
        return f"ConfiguredClient({self.client_id})"


NOT_CONFIGURED = ConfiguredClient()


def chosen_method(server: AuthorizationServer, client: ConfiguredClient) -> str:
    """How a client with these credentials proves itself there."""
    if client.private_key:
        return "private_key_jwt"
    if not client.client_secret:
        return "none"
    offered = [name for name in (BASIC, "client_secret_post") if name in server.token_methods]
    return offered[0] if offered else BASIC


def configured_client(server: AuthorizationServer, client: ConfiguredClient) -> OAuthClient | None:
    """The registered one first; then the gateway's own document, where the server reads such."""
    if client.client_id:
        return OAuthClient(
            issuer=server.issuer,
            client_id=client.client_id,
            client_secret=client.client_secret,
            method=chosen_method(server, client),
        )
    if client.document_url and server.takes_client_documents:
        return OAuthClient(issuer=server.issuer, client_id=client.document_url)
    return None


def client_document(url: str, redirect_uri: str) -> dict[str, object]:
    """What authorization servers read of the gateway at `url`, which is its id there."""
    return {
        "client_id": url,
        "client_name": NAME,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


async def register_client(
    web: Web, server: AuthorizationServer, redirect_uri: str, grants: tuple[str, ...], reach: Reach
) -> OAuthClient:
    """Dynamic registration (RFC 7591)."""
    if server.register_url is None:
        raise AuthorizationFault(
            f"{server.issuer} registers nobody by itself. Register agent-gate there (redirect address {redirect_uri}) "
            "and write client_id, and client_secret if it gave one, under the server's auth"
        )
    method = next(
        (name for name in ("none", BASIC, "client_secret_post") if name in server.token_methods), BASIC
    )
    wanted = {
        "client_name": NAME,
        "redirect_uris": [redirect_uri],
        "grant_types": list(grants),
        "response_types": ["code"] if "authorization_code" in grants else [],
        "token_endpoint_auth_method": method,
        "application_type": "native" if is_loopback(urlsplit(redirect_uri).hostname or "") else "web",
    }
    answer = await web.post_json(server.register_url, msgspec.json.encode(wanted), reach, "registration")
    if answer.status not in (200, 201):
        raise AuthorizationFault(f"{server.issuer} refused to register agent-gate (status {answer.status})")
    return read_registration(answer.json("registration"), server.issuer, redirect_uri, method)


def read_registration(answer: dict[str, object], issuer: str, redirect_uri: str, asked: str) -> OAuthClient:
    client_id, secret = answer.get("client_id"), answer.get("client_secret")
    if not isinstance(client_id, str) or not client_id or not isinstance(secret, str | None):
        raise AuthorizationFault("The registration's answer names no client")
    said = answer.get("token_endpoint_auth_method", asked)
    method = said if isinstance(said, str) and said in KNOWN_METHODS else asked
    if method != "none" and secret is None:
        method = "none"
    return OAuthClient(
        issuer=issuer, client_id=client_id, client_secret=secret, method=method, redirect_uri=redirect_uri
    )

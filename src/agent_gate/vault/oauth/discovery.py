"""From a server's address to its authorization server: the two documents of RFC 9728 and RFC 8414, checked."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec

from agent_gate.vault.oauth.challenge import BearerChallenge
from agent_gate.vault.oauth.dpop import ALGORITHM
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Web, check_url, origin_of

RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
BASIC = "client_secret_basic"


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """What a server says about itself: `resource` goes verbatim into every request for a token."""

    resource: str
    issuer: str
    scopes: tuple[str, ...] = ()
    takes_possession: bool = False


class AuthorizationServer(msgspec.Struct, frozen=True, kw_only=True):
    """What counts of an authorization server's own description."""

    issuer: str
    authorize_url: str | None = None
    token_url: str | None = None
    register_url: str | None = None
    device_url: str | None = None
    revoke_url: str | None = None
    jwks_url: str | None = None
    end_session_url: str | None = None
    userinfo_url: str | None = None
    token_methods: tuple[str, ...] = (BASIC,)
    grants: tuple[str, ...] = ("authorization_code",)
    challenge_methods: tuple[str, ...] | None = None
    scopes: tuple[str, ...] = ()
    says_issuer: bool = False
    takes_client_documents: bool = False
    takes_possession: bool = False

    def check_pkce(self) -> None:
        if self.challenge_methods is None or "S256" not in self.challenge_methods:
            raise AuthorizationFault(
                f"{self.issuer} does not offer PKCE with S256, without which a code could be stolen on the way. "
                "Sign in with a token of your own instead"
            )


def words(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def resource_documents(url: str, challenge: BearerChallenge | None) -> list[str]:
    """Where a server's description may be: where it says, else under its path, and at the root last."""
    if challenge is not None and challenge.resource_metadata:
        return [check_url(challenge.resource_metadata, "server's own description")]
    origin, path = origin_of(url), urlsplit(url).path.rstrip("/")
    at_path = [f"{origin}{RESOURCE}{path}"] if path else []
    return [*at_path, f"{origin}{RESOURCE}"]


async def find_resource(
    web: Web, url: str, challenge: BearerChallenge | None, reach: Reach
) -> ProtectedResource | None:
    """The description of the server at `url`; None where it has none, as servers of the first era."""
    for document in resource_documents(url, challenge):
        answer = await web.get(document, reach, "server's own description")
        if answer.status == 200:
            return read_resource(answer.json("server's own description"), url)
    return None


def read_resource(document: dict[str, Any], url: str) -> ProtectedResource:
    resource = document.get("resource")
    if not isinstance(resource, str) or not covers(resource, url):
        raise AuthorizationFault(
            "The server describes another resource than itself; nobody is signed in for that"
        )
    issuers = words(document.get("authorization_servers"))
    if not issuers:
        raise AuthorizationFault("The server names no authorization server")
    issuer = check_url(issuers[0], "authorization server")
    binds = ALGORITHM in words(document.get("dpop_signing_alg_values_supported"))
    binds = binds or document.get("dpop_bound_access_tokens_required") is True
    return ProtectedResource(resource, issuer, words(document.get("scopes_supported")), binds)


def covers(resource: str, url: str) -> bool:
    """Whether `resource` is the server at `url` or stands above it."""
    try:
        if origin_of(resource) != origin_of(url):
            return False
    except ValueError:
        return False
    above, path = urlsplit(resource).path.rstrip("/"), urlsplit(url).path.rstrip("/")
    return path == above or path.startswith(f"{above}/")


def server_documents(issuer: str) -> list[str]:
    """Where an authorization server's description may be; never at the root for one with a path."""
    origin, path = origin_of(issuer), urlsplit(issuer).path.rstrip("/")
    if not path:
        return [f"{origin}{SERVER}", f"{origin}{OPENID}"]
    return [f"{origin}{SERVER}{path}", f"{origin}{OPENID}{path}", f"{origin}{path}{OPENID}"]


async def find_server(web: Web, issuer: str, reach: Reach) -> AuthorizationServer | None:
    for document in server_documents(issuer):
        answer = await web.get(document, reach, "authorization server")
        if answer.status == 200:
            return read_server(answer.json("authorization server"), issuer)
    return None


def read_server(document: dict[str, Any], issuer: str) -> AuthorizationServer:
    """Its description, which must be about the very issuer that was asked for, letter by letter."""
    if document.get("issuer") != issuer:
        raise AuthorizationFault("The authorization server describes another one than itself; it is not used")

    def address(name: str) -> str | None:
        found = document.get(name)
        return None if found is None else check_url(found, name.replace("_", " "))

    methods = words(document.get("token_endpoint_auth_methods_supported"))
    challenge = document.get("code_challenge_methods_supported")
    return AuthorizationServer(
        issuer=issuer,
        authorize_url=address("authorization_endpoint"),
        token_url=address("token_endpoint"),
        register_url=address("registration_endpoint"),
        device_url=address("device_authorization_endpoint"),
        revoke_url=address("revocation_endpoint"),
        jwks_url=address("jwks_uri"),
        end_session_url=address("end_session_endpoint"),
        userinfo_url=address("userinfo_endpoint"),
        token_methods=methods or (BASIC,),
        grants=words(document.get("grant_types_supported")) or ("authorization_code", "implicit"),
        challenge_methods=words(challenge) if challenge is not None else None,
        scopes=words(document.get("scopes_supported")),
        says_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        takes_client_documents=document.get("client_id_metadata_document_supported") is True,
        takes_possession=ALGORITHM in words(document.get("dpop_signing_alg_values_supported")),
    )


def guessed_server(url: str) -> AuthorizationServer:
    """Endpoints of the first era's servers, which describe nothing: at the root of their own origin."""
    origin = origin_of(url)
    return AuthorizationServer(
        issuer=origin,
        authorize_url=f"{origin}/authorize",
        token_url=f"{origin}/token",
        register_url=f"{origin}/register",
        token_methods=("none", "client_secret_post", BASIC),
        challenge_methods=("S256",),
    )

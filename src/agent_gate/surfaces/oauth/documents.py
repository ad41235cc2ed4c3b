"""What clients read before they sign in: who protects each path, and where its authorization server is.

Every address in a document comes from the configuration, never from a request.
"""

from typing import Any

from agent_gate.access.jwt.keys import CURVES, RSA
from agent_gate.access.oidc.assertions import PROFILE
from agent_gate.access.sign_in.clients import GRANTS, JWT_BEARER, PRIVATE_KEY
from agent_gate.access.sign_in.request import MCP_PATHS, SCOPE
from agent_gate.net.http import Request, Response, json_response, refusal
from agent_gate.surfaces.oauth.open_to_all import CORS

RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
CACHED = (b"cache-control", b"max-age=300")
ALGORITHMS = sorted({*RSA, *(name for names in CURVES.values() for name in names)})


def resource_document(issuer: str, path: str) -> dict[str, Any]:
    return {
        "resource": f"{issuer}{path}",
        "resource_name": "agent-gate",
        "authorization_servers": [issuer],
        "scopes_supported": [SCOPE],
        "bearer_methods_supported": ["header"],
    }


def server_document(issuer: str, *, reads_documents: bool, takes_assertions: bool) -> dict[str, Any]:
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "registration_endpoint": f"{issuer}/register",
        "revocation_endpoint": f"{issuer}/revoke",
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [*GRANTS, *([JWT_BEARER] if takes_assertions else [])],
        **({"authorization_grant_profiles_supported": [PROFILE]} if takes_assertions else {}),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", PRIVATE_KEY],
        "token_endpoint_auth_signing_alg_values_supported": ALGORITHMS,
        "revocation_endpoint_auth_methods_supported": ["none"],
        "client_id_metadata_document_supported": reads_documents,
        "authorization_response_iss_parameter_supported": True,
        "scopes_supported": [SCOPE],
    }


def well_known(
    issuer: str, request: Request, *, reads_documents: bool = True, takes_assertions: bool = False
) -> Response:
    path = request.path
    if request.method not in ("GET", "HEAD"):
        return refusal(405, "INVALID_ARGS", "This document is read with GET", (*CORS, (b"allow", b"GET")))
    if path.startswith(RESOURCE):
        resource = path.removeprefix(RESOURCE) or "/mcp"
        if resource in MCP_PATHS:
            return json_response(200, resource_document(issuer, resource), (*CORS, CACHED))
    elif path in SERVER:
        found = server_document(issuer, reads_documents=reads_documents, takes_assertions=takes_assertions)
        return json_response(200, found, (*CORS, CACHED))
    return refusal(404, "INVALID_ARGS", "There is no such document", CORS)

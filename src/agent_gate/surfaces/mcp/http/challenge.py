"""Who calls, and what a caller without a valid token is told: the 401 challenge and the metadata it points to.

Where clients can sign in, every address comes from the configuration (`issuer`), never from the request.
"""

from agent_gate.errors import GatewayError, Unauthorized
from agent_gate.mcp import messages
from agent_gate.mcp.names import META_CHALLENGE
from agent_gate.net.http import Request, Response, error_response, json_response
from agent_gate.surfaces.mcp.tools.render import completed, text_result
from agent_gate.surfaces.mcp.tools.step_up import ScopeNeeded
from agent_gate.surfaces.mcp.visit import Visit

WELL_KNOWN = "/.well-known/oauth-protected-resource"
SCOPE = "mcp"


def base_url(request: Request) -> str:
    host = (request.header(b"host") or b"localhost").decode("ascii", "replace")
    return f"{'https' if request.secure else 'http'}://{host}"


def turned_away(request: Request, error: GatewayError, issuer: str | None = None) -> Response:
    """The refusal of a request without a valid token; a 401 says where to read how this resource is protected."""
    if not isinstance(error, Unauthorized):
        return error_response(error)
    known = f'resource_metadata="{issuer or base_url(request)}{WELL_KNOWN}{request.path}"'
    if issuer is None:
        header = f'Bearer realm="agent-gate", {known}'
    else:
        wrong = 'error="invalid_token", ' if request.header(b"authorization") is not None else ""
        header = f'Bearer realm="agent-gate", {wrong}{known}, scope="{SCOPE}"'
    return error_response(error, ((b"www-authenticate", header.encode("ascii", "replace")),))


def more_needed(issuer: str, visit: Visit, error: ScopeNeeded) -> Response:
    """The answer to a call of something that another sign-in could give; it names all that would be needed."""
    known = f'resource_metadata="{issuer}{WELL_KNOWN}{visit.caller.audience}"'
    challenge = f'Bearer error="insufficient_scope", scope="{error.scope}", {known}'
    if visit.caller.challenged_in_results:
        said = f'{challenge}, error_description="{error.message}"'
        result = text_result(error.message, {META_CHALLENGE: [said]}, is_error=True)
        return Response(
            200, messages.response(visit.id, completed(result) if visit.revision.types_results else result)
        )
    header = (b"www-authenticate", challenge.encode("ascii", "replace"))
    return Response(403, messages.error_response(visit.id, error), (header,))


def metadata(request: Request) -> Response:
    """Protected-resource metadata (RFC 9728): tokens come from the operator and go into the header."""
    path = request.path.removeprefix(WELL_KNOWN) or "/mcp"
    document = {
        "resource": f"{base_url(request)}{path}",
        "resource_name": "agent-gate",
        "bearer_methods_supported": ["header"],
    }
    return json_response(200, document, ((b"cache-control", b"no-store"),))

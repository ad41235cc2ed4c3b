"""Who calls, and what a caller without a valid token is told: the 401 challenge and the metadata it points to."""

from agent_gate.errors import GatewayError, Unauthorized
from agent_gate.net.http import Request, Response, error_response, json_response

WELL_KNOWN = "/.well-known/oauth-protected-resource"


def base_url(request: Request) -> str:
    host = (request.header(b"host") or b"localhost").decode("ascii", "replace")
    return f"{'https' if request.secure else 'http'}://{host}"


def turned_away(request: Request, error: GatewayError) -> Response:
    """The refusal of a request without a valid token; a 401 says where to read how this resource is protected."""
    if not isinstance(error, Unauthorized):
        return error_response(error)
    known = f"{base_url(request)}{WELL_KNOWN}{request.path}"
    header = f'Bearer realm="agent-gate", resource_metadata="{known}"'.encode("ascii", "replace")
    return error_response(error, ((b"www-authenticate", header),))


def metadata(request: Request) -> Response:
    """Protected-resource metadata (RFC 9728): tokens come from the operator and go into the header."""
    path = request.path.removeprefix(WELL_KNOWN) or "/mcp"
    document = {
        "resource": f"{base_url(request)}{path}",
        "resource_name": "agent-gate",
        "bearer_methods_supported": ["header"],
    }
    return json_response(200, document, ((b"cache-control", b"no-store"),))

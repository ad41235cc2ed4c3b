"""The paths that programs in any page may use: they take no cookies, so a foreign page gains nothing there."""

from agent_gate.net.http import Header, Request, Response

ENDPOINTS = frozenset({"/token", "/register", "/revoke"})
WELL_KNOWN = "/.well-known/"
CORS: tuple[Header, ...] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"www-authenticate, retry-after"),
)
PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
    (b"access-control-allow-headers", b"authorization, content-type, mcp-protocol-version"),
    (b"access-control-max-age", b"3600"),
)


def is_open(path: str) -> bool:
    return path in ENDPOINTS or path.startswith(WELL_KNOWN)


def preflight(request: Request) -> Response | None:
    return Response(204, b"", PREFLIGHT) if request.method == "OPTIONS" else None

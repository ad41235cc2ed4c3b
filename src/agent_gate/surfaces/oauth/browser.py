"""What a browser carries through a sign-in: its cookie, and where it is sent next."""

from urllib.parse import urlencode, urlsplit

from agent_gate.access.login import HOST_ONLY, cookie_of
from agent_gate.net.http import Header, Request, Response

PATH, WAIT = "/authorize", "/authorize/wait"
COOKIE, INVITE = "agent_gate_sign_in", "agent_gate_invite"


def is_encrypted(issuer: str) -> bool:
    return issuer.startswith("https://")


def cookie_name(issuer: str, name: str) -> str:
    """Over TLS one that only this very host can have given: a neighbour that could set it would choose whose sign-in a
    browser finishes."""
    return f"{HOST_ONLY}{name}" if is_encrypted(issuer) else name


def carried_cookie(issuer: str, request: Request, name: str) -> str | None:
    return cookie_of(request, cookie_name(issuer, name))


def set_cookie(issuer: str, name: str, value: str, seconds: float = 3600.0, path: str = PATH) -> Header:
    where = "/; Secure" if is_encrypted(issuer) else path
    text = f"{cookie_name(issuer, name)}={value}; Path={where}; HttpOnly; SameSite=Lax; Max-Age={seconds:.0f}"
    return (b"set-cookie", text.encode("latin-1"))


def redirect(url: str, status: int = 302) -> Response:
    headers = (
        (b"location", url.encode("ascii")),
        (b"cache-control", b"no-store"),
        (b"referrer-policy", b"no-referrer"),
    )
    return Response(status, b"", headers, b"")


def answer_url(
    uri: str, issuer: str, state: str | None, *, code: str = "", error: str = "", description: str = ""
) -> str:
    """The client's address with the answer, and with who gives it (RFC 9207)."""
    said = {
        **({"code": code} if code else {"error": error}),
        **({"error_description": description} if description else {}),
        **({"state": state} if state is not None else {}),
        "iss": issuer,
    }
    return f"{uri}{'&' if urlsplit(uri).query else '?'}{urlencode(said)}"

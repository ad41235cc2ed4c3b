"""What a browser carries through a sign-in: its cookie, and where it is sent next."""

from urllib.parse import urlencode, urlsplit

from agent_gate.net.http import Header, Response

PATH, WAIT = "/authorize", "/authorize/wait"
COOKIE, INVITE = "agent_gate_sign_in", "agent_gate_invite"


def set_cookie(issuer: str, name: str, value: str, seconds: float = 3600.0, path: str = PATH) -> Header:
    secure = "; Secure" if issuer.startswith("https://") else ""
    text = f"{name}={value}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={seconds:.0f}{secure}"
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

"""The operator's page: a fixed set of files, read once, sent with headers that let them load nothing foreign."""

from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from agent_gate.errors import ConfigError
from agent_gate.net.http import Header, Request, Response, refusal

TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".webmanifest": b"application/manifest+json",
}
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; manifest-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types worker"
)
SECURE: tuple[Header, ...] = (
    (b"content-security-policy", POLICY),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)

ALONE = ("/login.js", "/sw.js")
"""Scripts that are no module of the page. All others are named in its head, so that none waits for the one before it."""


def folder() -> Path:
    """Where the page's files are: inside the installed package, else beside `src` in a checkout."""
    package = Path(str(files("agent_gate")))
    for place in (package / "ui", package.parents[1] / "ui"):
        if (place / "index.html").is_file():
            return place
    raise ConfigError("The operator's page is missing from this installation; install agent-gate again")


class PageFiles:
    """Serves exactly the files that were there at the start; a path is only ever looked up, never opened."""

    def __init__(self, root: Path) -> None:
        self._files: dict[str, tuple[bytes, bytes, bytes]] = {}
        for file in sorted(root.rglob("*")):
            if file.suffix in TYPES and file.is_file():
                body = file.read_bytes()
                tag = b'"%b"' % sha256(body).hexdigest()[:20].encode()
                self._files[f"/{file.relative_to(root).as_posix()}"] = (body, TYPES[file.suffix], tag)

        modules = [path for path in self._files if path.endswith(".js") and path not in ALONE]
        self._early = (b"link", ", ".join(f"<{path}>; rel=modulepreload" for path in modules).encode())

    def paths(self) -> list[str]:
        return list(self._files)

    def serve(self, request: Request, *, welcome: bool) -> Response:
        """A file; the page itself only for somebody who is logged in, others learn how to log in."""
        if request.method not in ("GET", "HEAD"):
            return refusal(405, "INVALID_ARGS", "Only GET is offered here", ((b"allow", b"GET, HEAD"),))
        path = request.path
        if path == "/" and welcome:
            return self._file(request, "/index.html", more=(self._early,))
        if path == "/":
            return self._file(request, "/login.html", 401)
        if path == "/login":
            return self._file(request, "/login.html")
        if path not in self._files or path.endswith(".html"):
            return refusal(404, "INVALID_ARGS", "There is nothing here. The page is at /", SECURE)
        return self._file(request, path)

    def _file(
        self, request: Request, path: str, status: int = 200, more: tuple[Header, ...] = ()
    ) -> Response:
        body, kind, tag = self._files[path]
        headers = (*SECURE, (b"etag", tag), (b"cache-control", b"no-cache"), *more)
        if status == 200 and request.header(b"if-none-match") == tag:
            return Response(304, b"", headers, kind)
        return Response(status, body, headers, kind)

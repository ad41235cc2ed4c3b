"""The operator's page: a fixed set of files, read once, sent with headers that let them load nothing foreign."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from agent_gate.errors import ConfigError
from agent_gate.net.http import Header, Request, Response, encode_json, refusal
from agent_gate.surfaces.admin.doors.modules import Modules

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

LINK = re.compile(rb'(?<==")(/[^"]+\.(css|js|svg|png))(?=")')
NEEDS = b"data-needs='%b'"
VERSION = re.compile(r"/@\w+(?=/)")

KEPT: Header = (b"cache-control", b"max-age=31536000, immutable")
CHECKED: Header = (b"cache-control", b"no-cache")
NOT_KEPT: Header = (b"cache-control", b"no-store")


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file as it is sent; `more` are headers of its own."""

    body: bytes
    kind: bytes
    tag: bytes
    more: tuple[Header, ...] = ()


def folder() -> Path:
    """Where the page's files are: inside the installed package, else beside `src` in a checkout."""
    package = Path(str(files("agent_gate")))
    for place in (package / "ui", package.parents[1] / "ui"):
        if (place / "index.html").is_file():
            return place
    raise ConfigError("The operator's page is missing from this installation; install agent-gate again")


def read_files(root: Path) -> dict[str, bytes]:
    """What is below `root`, by the path it is asked for."""
    found = sorted(file for file in root.rglob("*") if file.suffix in TYPES and file.is_file())
    return {f"/{file.relative_to(root).as_posix()}": file.read_bytes() for file in found}


def digest_of(parts: Iterable[bytes]) -> str:
    return sha256(b"\0".join(parts)).hexdigest()[:20]


def document(body: bytes, modules: Modules, under: bytes) -> tuple[bytes, Header]:
    """A document that names its files below `under`, and a head that names all modules of its scripts, so that none waits
    for the one before it. One that asks for it is told what each page needs, as only the browser knows which it opens."""
    frame = modules.needed_by(*(name.decode() for name, kind in LINK.findall(body) if kind == b"js"))
    needs = {name: [f".{one}" for one in own] for name, own in modules.needed_by_pages(frame).items()}
    told = body.replace(NEEDS % b"{}", NEEDS % encode_json(needs))
    early = b", ".join(b"<%b%b>; rel=modulepreload" % (under, one.encode()) for one in frame)
    return LINK.sub(under + rb"\1", told), (b"link", early)


def page_file(path: str, body: bytes, modules: Modules, under: bytes) -> PageFile:
    more: tuple[Header, ...] = ()
    if path.endswith(".html"):
        body, head = document(body, modules, under)
        more = (head,)
    return PageFile(body, TYPES[Path(path).suffix], b'"%b"' % digest_of([body]).encode(), more)


class PageFiles:
    """Serves exactly the files that were there at the start; a path is only ever looked up, never opened.

    Below a version of all of them a browser keeps each for good. It asks for that version after every change, as the
    documents name it, and documents are asked for each time.
    """

    def __init__(self, root: Path) -> None:
        found = read_files(root)
        modules = Modules(found)
        self._under = f"/@{digest_of(part for path, body in found.items() for part in (path.encode(), body))}"
        under = self._under.encode()
        self._files = {path: page_file(path, body, modules, under) for path, body in found.items()}

    def paths(self) -> list[str]:
        return list(self._files)

    def serve(self, request: Request, *, welcome: bool) -> Response:
        """A file; the page itself only for somebody who is logged in, others learn how to log in."""
        if request.method not in ("GET", "HEAD"):
            return refusal(405, "INVALID_ARGS", "Only GET is offered here", ((b"allow", b"GET, HEAD"),))
        if request.path == "/":
            return self._file(request, "/index.html") if welcome else self._file(request, "/login.html", 401)
        if request.path == "/login":
            return self._file(request, "/login.html")
        version = VERSION.match(request.path)
        path = request.path[version.end() :] if version else request.path
        if path not in self._files or path.endswith(".html"):
            return refusal(404, "INVALID_ARGS", "There is nothing here. The page is at /", SECURE)
        return self._file(request, path, caching=self._caching(version[0]) if version else CHECKED)

    def _caching(self, version: str) -> Header:
        """Another version was asked for while gateways of two serve the page: it gets what is here, and keeps it not."""
        return KEPT if version == self._under else NOT_KEPT

    def _file(self, request: Request, path: str, status: int = 200, caching: Header = CHECKED) -> Response:
        file = self._files[path]
        headers = (*SECURE, (b"etag", file.tag), caching, *file.more)
        if status == 200 and request.header(b"if-none-match") == file.tag:
            return Response(304, b"", headers, file.kind)
        return Response(status, file.body, headers, file.kind)

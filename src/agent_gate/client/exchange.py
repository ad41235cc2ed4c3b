"""A small HTTP/1.1 client on asyncio's streams for programs that must start at once; it imports nothing heavy."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from agent_gate.errors import ConfigError
from agent_gate.net.tls.trust import client_context, is_pinned, plain_fingerprint

PORTS = {"http": 80, "https": 443}
SCHEMES = {"ws": "http", "wss": "https"}
HEAD_LIMIT = 256 * 1024
PIECE = 64 * 1024
CONNECT_SECONDS = 10.0


class NotReached(Exception):
    """No connection: nothing was sent."""


class ReplyBroken(Exception):
    """The connection ended before the whole reply was there: the request may have been acted on."""


class Distrusted(Exception):
    """The other side is not who it should be; trying again does not help."""


class Address(NamedTuple):
    """Where the gateway listens. `path` is that of its MCP endpoint."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, url: str) -> "Address":
        """A base URL gets `/mcp`; `ws` and `wss` mean `http` and `https`."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:  # a bracket that is not closed, a port that is no number
            raise ConfigError("The gateway's URL must be http(s)://host[:port][/path]") from None
        scheme = SCHEMES.get(parts.scheme, parts.scheme)
        plain = url.isascii() and url.isprintable()
        if (
            scheme not in PORTS
            or not plain
            or not parts.hostname
            or parts.query
            or parts.fragment
            or parts.username
        ):
            raise ConfigError("The gateway's URL must be http(s)://host[:port][/path], without user or query")
        path = parts.path.rstrip("/")
        return cls(scheme, parts.hostname, port or PORTS[scheme], path or "/mcp")

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def ready(self) -> str:
        """Where the gateway says whether its sources are connected."""
        return self.path.partition("/mcp")[0] + "/ready"


class OpenConnection(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def usable(self) -> bool:
        return not self.writer.is_closing() and not self.reader.at_eof()


class HttpReply:
    """A reply whose head is read; the body follows with `read_pieces` or `read`, then `close`."""

    def __init__(self, http: "Http", line: OpenConnection, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self._http = http
        self._line = line
        self._ended = False
        self._body: bytes | None = None

    @property
    def kind(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def read_pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        try:
            if "chunked" in self.headers.get("transfer-encoding", "").lower():
                async for piece in self._read_chunks():
                    yield piece
            else:
                async for piece in self._read_plain():
                    yield piece
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
            raise ReplyBroken(f"the reply broke off: {error or type(error).__name__}") from None

    async def _read_chunks(self) -> AsyncIterator[bytes]:
        reader = self._line.reader
        while size := int((await reader.readuntil(b"\n")).partition(b";")[0], 16):
            async for piece in self._read_exactly(size):
                yield piece
            await reader.readexactly(2)
        while (await reader.readuntil(b"\n")).strip():
            pass
        self._ended = True

    async def _read_plain(self) -> AsyncIterator[bytes]:
        length = self.headers.get("content-length")
        if self.status in (204, 304):
            self._ended = True
        elif length is not None:
            async for piece in self._read_exactly(int(length)):
                yield piece
            self._ended = True
        else:
            while piece := await self._line.reader.read(PIECE):
                yield piece

    async def _read_exactly(self, size: int) -> AsyncIterator[bytes]:
        while size:
            piece = await self._line.reader.read(min(size, PIECE))
            if not piece:
                raise asyncio.IncompleteReadError(b"", size)
            size -= len(piece)
            yield piece

    async def read(self) -> bytes:
        """The whole body; asked again, the same one."""
        if self._body is None:
            self._body = b"".join([piece async for piece in self.read_pieces()])
        return self._body

    def close(self) -> None:
        """Done with this reply; its connection is kept only if the reply was read to its end."""
        if self._ended and self.headers.get("connection", "").lower() != "close":
            self._http.keep(self._line)
        else:
            self._line.writer.close()


class Http:
    """Requests to one gateway, over connections that are kept for the next one."""

    def __init__(self, address: Address, ca: Path | None = None, fingerprint: str | None = None) -> None:
        self.address = address
        self._context = client_context(ca, fingerprint) if address.scheme == "https" else None
        self._fingerprint = plain_fingerprint(fingerprint) if fingerprint else None
        self._idle: list[OpenConnection] = []

    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes = b"", path: str | None = None
    ) -> HttpReply:
        """Send one request, to the MCP endpoint unless `path` says otherwise, and read the head of its reply."""
        line = self._reuse() or await self._connect()
        try:
            line.writer.write(self._encode(method, path or self.address.path, headers, body))
            await line.writer.drain()
            return await self._read_head(line)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
            line.writer.close()
            raise ReplyBroken(f"the connection broke: {error or type(error).__name__}") from None
        except asyncio.CancelledError:
            line.writer.close()
            raise

    def _encode(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.address.authority}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if method == "POST":
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    async def _read_head(self, line: OpenConnection) -> HttpReply:
        while True:
            head = (await line.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *rest = head.rstrip("\r\n").split("\r\n")
            status = int(first.split(" ", 2)[1])
            if status >= 200:
                pairs = (entry.partition(":") for entry in rest)
                return HttpReply(
                    self, line, status, {name.lower(): value.strip() for name, _, value in pairs}
                )

    def _reuse(self) -> OpenConnection | None:
        while self._idle:
            line = self._idle.pop()
            if line.usable:
                return line
            line.writer.close()
        return None

    async def _connect(self) -> OpenConnection:
        address = self.address
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                line = OpenConnection(
                    *await asyncio.open_connection(
                        address.host, address.port, ssl=self._context, limit=HEAD_LIMIT
                    )
                )
        except ssl.SSLCertVerificationError as error:
            reason = f"{address.origin} shows a certificate that is not trusted: {error.verify_message}"
            raise Distrusted(f"{reason}. Pass --ca or --fingerprint") from None
        except (OSError, TimeoutError) as error:
            raise NotReached(f"{address.origin} cannot be reached: {error or 'it took too long'}") from None
        self._check(line)
        return line

    def _check(self, line: OpenConnection) -> None:
        if self._fingerprint is None or self._context is None:
            return
        shown = line.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if not is_pinned(shown, self._fingerprint):
            line.writer.close()
            raise Distrusted(f"{self.address.origin} shows a certificate that is not the pinned one")

    def keep(self, line: OpenConnection) -> None:
        self._idle.append(line)

    def close(self) -> None:
        for line in self._idle:
            line.writer.close()
        self._idle.clear()

"""The only way out of a session's pages: a proxy on loopback that looks up each host, checks every address of it, and
connects to the one that was checked.

Pages, frames, workers, redirects and WebSockets all come here, so there is one place to refuse in. What was refused is
kept for the agent to be told.
"""

import asyncio
import base64
import contextlib
import logging
from collections import deque
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import unquote, urlsplit

from agent_gate.core.tasks import KeptTasks
from agent_gate.errors import ConfigError, Forbidden
from agent_gate.net.addresses import PrivateHosts

log = logging.getLogger("agent_gate.sources.browser")
HEAD_BYTES = 64 << 10
CHUNK = 64 << 10
MOST_CONNECTIONS = 256
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 300.0
HEAD_SECONDS = 20.0
MOST_REFUSALS = 20
DROPPED = frozenset(
    {b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"te", b"upgrade"}
)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HostRefused(Exception):
    """A request that gets no further, with the status line of its answer."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """The proxy that checked traffic leaves through. `proof` is the value of its `Proxy-Authorization`,
    `secrets` is what of it must stand in no log."""

    host: str
    port: int
    proof: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def upstream_of(address: str, where: str) -> UpstreamProxy | None:
    """What `browser.proxy` says; none where it is empty. Raises `ConfigError` where it is no HTTP proxy."""
    if not address:
        return None
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or 3128
    except ValueError:
        host, port = "", 0
    if not host or parts.scheme != "http":
        raise ConfigError(
            "browser.proxy must be an HTTP proxy, such as http://10.0.0.1:3128 or http://user:password@10.0.0.1:3128",
            where=where,
        )
    if not parts.username:
        return UpstreamProxy(host, port)
    password = unquote(parts.password or "")
    proof = base64.b64encode(f"{unquote(parts.username)}:{password}".encode()).decode()
    return UpstreamProxy(host, port, f"Basic {proof}", (password, proof) if password else ())


class CheckingProxy:
    """One listener for one session. `refusals` are the latest hosts that were refused, and why."""

    def __init__(self, private: PrivateHosts, upstream: UpstreamProxy | None = None) -> None:
        self._private, self._upstream = private, upstream
        self._tasks = KeptTasks(log, "A connection of a page broke the proxy")
        self._server: asyncio.Server | None = None
        self.refusals: deque[tuple[tuple[str, int], str]] = deque(maxlen=MOST_REFUSALS)
        self.refused = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_BYTES)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        await self._tasks.cancel()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks.running) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._tasks.start(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._forward(head, reader, writer)
        except HostRefused as refused:
            answer = f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{refused.why}\n"
            writer.write(answer.encode())
            with contextlib.suppress(OSError):
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the page, or the host that it asked, is gone: there is nobody to tell
        finally:
            writer.close()

    async def _forward(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, *fields = head[:-4].split(b"\r\n")
        method, _, rest = line.partition(b" ")
        target, _, version = rest.rpartition(b" ")
        if version not in (b"HTTP/1.1", b"HTTP/1.0"):
            raise HostRefused("400 Bad Request", "This is not a request")
        if method == b"CONNECT":
            host, port = host_of(f"//{target.decode('latin-1')}", 443)
            remote = await self._dial(host, port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await relay((reader, writer), remote, None)
            return
        address = urlsplit(target.decode("latin-1"))
        if address.scheme != "http":
            raise HostRefused("400 Bad Request", "Only http and https leave this browser")
        host, port = host_of(target.decode("latin-1"), 80)
        remote = await self._dial(host, port)
        path = (address.path or "/") + (f"?{address.query}" if address.query else "")
        kept = [one for one in fields if one.partition(b":")[0].strip().lower() not in DROPPED]
        begun = b"\r\n".join(
            [b"%b %b HTTP/1.1" % (method, path.encode("latin-1")), *kept, b"Connection: close"]
        )
        remote[1].write(begun + b"\r\n\r\n")
        await relay((reader, writer), remote, body_length(fields))

    async def _dial(self, host: str, port: int) -> Streams:
        try:
            addresses = await self._private.resolve(host, port)
        except Forbidden as error:
            self._note(host, port, error.message)
            raise HostRefused("403 Forbidden", f"agent-gate refused {host}: {error.message}") from None
        except (OSError, UnicodeError):
            raise HostRefused("502 Bad Gateway", f"{host} cannot be found") from None
        failed: Exception | None = None
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await self._connect(address, port)
            except (OSError, TimeoutError) as error:
                failed = error
        raise HostRefused("502 Bad Gateway", f"{host} cannot be reached: {type(failed).__name__}")

    async def _connect(self, address: str, port: int) -> Streams:
        upstream = self._upstream
        if upstream is None:
            return await asyncio.open_connection(address, port, limit=HEAD_BYTES)
        reader, writer = await asyncio.open_connection(upstream.host, upstream.port, limit=HEAD_BYTES)
        try:
            await ask_upstream(
                upstream, reader, writer, f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
            )
        except BaseException:
            writer.close()
            raise
        return reader, writer

    def why_refused(self, url: str) -> str:
        """Why the host of this address was refused lately; empty where it was not."""
        with contextlib.suppress(HostRefused):
            place = host_of(url, 443 if url.startswith("https:") else 80)
            return dict(self.refusals).get(place, "")
        return ""

    def _note(self, host: str, port: int, why: str) -> None:
        self.refused += 1
        self.refusals.append(((host, port), why))
        log.info("A page was kept from a host", extra={"host": host, "why": why})


async def ask_upstream(
    upstream: UpstreamProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: str
) -> None:
    """Have the proxy connect to a place. Raises `HostRefused` where it does not."""
    proof = f"Proxy-Authorization: {upstream.proof}\r\n" if upstream.proof else ""
    writer.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{proof}\r\n".encode())
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise HostRefused("502 Bad Gateway", "The proxy of browser.proxy gave no answer") from None
    status = answer.split(b" ", 2)[1:2]
    if status != [b"200"]:
        said = status[0].decode("latin-1")[:20] if status else "nothing"
        raise HostRefused("502 Bad Gateway", f"The proxy of browser.proxy answered {said} for {place}")


def host_of(target: str, usual: int) -> tuple[str, int]:
    try:
        parts = urlsplit(target)
        host, port = parts.hostname or "", parts.port or usual
    except ValueError:
        raise HostRefused("400 Bad Request", "This is not an address") from None
    if not host or "%" in host:
        raise HostRefused("400 Bad Request", "The request names no host")
    return host, port


def body_length(fields: list[bytes]) -> int | None:
    """How many bytes of body follow a request's head; None where it does not say, because they come in chunks."""
    length = 0
    for one in fields:
        name, _, value = one.partition(b":")
        if name.strip().lower() == b"transfer-encoding":
            return None
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
    return length


async def relay(page: Streams, remote: Streams, most: int | None) -> None:
    """Pass bytes both ways until one side ends; `most` of them to the host, where its request says how many."""
    try:
        up = asyncio.ensure_future(pass_on(page[0], remote[1], most))
        down = asyncio.ensure_future(pass_on(remote[0], page[1], None))
        both = {up, down}
        try:
            await asyncio.wait({down} if most is not None else both, return_when=asyncio.FIRST_COMPLETED)
            if most is None and up.done() and not down.done():
                await asyncio.wait({down}, timeout=IDLE_SECONDS)
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)
    finally:
        remote[1].close()


async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter, most: int | None) -> None:
    left = most
    while left is None or left > 0:
        async with asyncio.timeout(IDLE_SECONDS):
            data = await source.read(CHUNK if left is None else min(CHUNK, left))
        if not data:
            break
        left = None if left is None else left - len(data)
        sink.write(data)
        await sink.drain()
    if left is None and sink.can_write_eof():
        sink.write_eof()

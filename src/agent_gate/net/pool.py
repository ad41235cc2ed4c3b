"""The outbound HTTP/1.1 pool: bytes out exactly as given, a reply back, and the truth about delivery.

`NotSent` means that the request never left; `Lost` means that it may have been acted on. There are no
redirects, no proxies from the environment, no cookies and no content codings.
"""

import asyncio
import math
import re
import ssl
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from agent_gate.errors import ConfigError
from agent_gate.net.exchange import (
    BadReply,
    KnownReply,
    Lost,
    NotSent,
    StreamReply,
    TooLarge,
    WholeReply,
    Wire,
    retry_after,
)
from agent_gate.net.http import Header, header_lines
from agent_gate.net.outbox import Outbox
from agent_gate.net.tls.trust import check_fingerprint, client_context
from agent_gate.net.unixpath import check_owner, reachable

__all__ = [
    "BadReply",
    "Lost",
    "NotSent",
    "Pool",
    "Resolve",
    "StreamReply",
    "Target",
    "TooLarge",
    "WholeReply",
    "retry_after",
]

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
PORTS = {"http": 80, "https": 443}
PRINTABLE = re.compile(rb"/[!-\"$-~]*")
LONGEST_KEPT = 2048
HOST = re.compile(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+")
OURS = frozenset(
    {b"host", b"content-length", b"transfer-encoding", b"connection", b"accept-encoding", b"expect"}
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go, parsed once. `base` stands before every request's own path."""

    scheme: str
    host: str
    port: int
    base: bytes
    origin: str
    tail: bytes

    @classmethod
    def parse(cls, url: str) -> "Target":
        """`https://host:port/base`; a query, fragment or password in it is refused."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise ConfigError(f"this is not a URL ({error}); write http(s)://host[:port][/path]") from None
        if parts.scheme not in PORTS or not HOST.fullmatch(host):
            raise ConfigError("a URL must be http(s)://host[:port][/path] with a plain host name")
        if parts.username is not None or parts.password is not None or parts.fragment or parts.query:
            raise ConfigError(f"the URL of {host} must have no user, password, query or fragment")
        base = parts.path.rstrip("/").encode("utf-8")
        if base and not PRINTABLE.fullmatch(base):
            raise ConfigError(f"the path in the URL of {host} must be printable ASCII, percent-encoded")
        bracketed = f"[{host}]" if ":" in host else host
        authority = bracketed if port in (None, PORTS[parts.scheme]) else f"{bracketed}:{port}"
        tail = b" HTTP/1.1\r\nhost: %b\r\naccept-encoding: identity\r\n" % authority.encode("ascii")
        origin = f"{parts.scheme}://{authority}"
        return cls(parts.scheme, host, port or PORTS[parts.scheme], base, origin, tail)

    @classmethod
    def unix(cls, path: Path) -> "Target":
        """The service that listens on a Unix socket of this machine; only one of this user's or root's is used."""
        tail = b" HTTP/1.1\r\nhost: localhost\r\naccept-encoding: identity\r\n"
        return cls("unix", str(path), 0, b"", f"unix:{path}", tail)


class Sending(msgspec.Struct, gc=False):
    """One request on its way. A reply's body of up to `whole` bytes is handed over in one piece."""

    data: bytes
    target: Target
    deadline: float
    max_bytes: int
    idempotent: bool
    whole: int
    head_only: bool = False
    streaming: bool = False


class Pool:
    """Keep-alive connections to any number of targets. Use one per program; `aclose` it at the end.

    `verify` raises `ssl.SSLError` for a certificate, in DER, of somebody else than the one that is meant.
    """

    def __init__(
        self,
        ssl_context: ssl.SSLContext | None = None,
        *,
        fingerprint: str | None = None,
        verify: Callable[[bytes], None] | None = None,
        resolve: Resolve | None = None,
        max_idle: int = 128,
        idle_seconds: float = 30.0,
        trust_seconds: float = 2.0,
        connect_timeout: float = 10.0,
    ) -> None:
        self.fingerprint = fingerprint
        self._verify = verify
        self.max_idle = max_idle
        self.idle_seconds = idle_seconds
        self.trust_seconds = trust_seconds
        self.connect_timeout = connect_timeout
        self.sweep_at = math.inf
        self._context = ssl_context
        self._resolve = resolve
        self._idle: dict[str, list[Wire]] = {}
        self._wires: set[Wire] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.replies: dict[bytes, KnownReply] = {}
        self.repeated = self.parsed = 0

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    @cached_property
    def outbox(self) -> Outbox:
        return Outbox(self.loop)

    def request(
        self,
        method: str,
        target: Target,
        path: bytes = b"",
        headers: Sequence[Header] = (),
        body: bytes | None = None,
        *,
        deadline: float,
        max_bytes: int,
        idempotent: bool = False,
    ) -> Coroutine[Any, Any, WholeReply]:
        """One exchange with its whole reply. `target.base + path` is sent byte for byte."""
        data = encode_request(method, target, path, headers, body)
        head_only = method == "HEAD"
        whole = -1 if head_only else max_bytes
        return self._exchange(Sending(data, target, deadline, max_bytes, idempotent, whole, head_only))

    def stream(
        self,
        method: str,
        target: Target,
        path: bytes = b"",
        headers: Sequence[Header] = (),
        body: bytes | None = None,
        *,
        deadline: float,
        max_bytes: int,
        idempotent: bool = False,
    ) -> Coroutine[Any, Any, StreamReply]:
        """As `request`, but it returns with the head and the body follows as it comes."""
        data = encode_request(method, target, path, headers, body)
        return self._exchange(
            Sending(data, target, deadline, max_bytes, idempotent, -1, method == "HEAD", streaming=True)
        )

    def send(
        self, target: Target, head: bytes, body: bytes, deadline: float, whole: int, *, idempotent: bool
    ) -> Coroutine[Any, Any, WholeReply | StreamReply]:
        """A request whose `head` was encoded before, by `request_head`.

        A reply that announces at most `whole` bytes, and is no stream of events, is waited for; any other comes
        as a stream without a limit.
        """
        data = b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)
        return self._exchange(Sending(data, target, deadline, sys.maxsize, idempotent, whole, False, True))

    async def _exchange(self, sending: Sending) -> Any:
        """Send on the connection used last or on a fresh one; after a reused one broke, once more if safe."""
        target = sending.target
        now = self.loop.time()
        if sending.deadline <= now:
            raise NotSent(f"no time was left to call {target.origin}", timed_out=True)
        kept = self._reuse(target, now, idempotent=sending.idempotent)
        while True:
            wire = kept or await self._connect(target, sending.deadline)
            waiter = wire.send(sending)
            try:
                return await waiter
            except asyncio.CancelledError:
                wire.give_up(waiter)
                raise
            except NotSent:
                if kept is None:
                    raise
            except Lost as error:
                if kept is None or not sending.idempotent or error.timed_out or wire.received:
                    raise
            kept = None

    # -- connections

    def _reuse(self, target: Target, now: float, *, idempotent: bool) -> Wire | None:
        """The connection used last, unless it sat idle too long for a request that must not repeat."""
        idle = self._idle.get(target.origin)
        while idle:
            wire = idle[-1]
            if wire.transport is None or wire.transport.is_closing():
                idle.pop()
            elif idempotent or now - wire.idle_since <= self.trust_seconds:
                return idle.pop()
            else:
                return None
        return None

    async def _connect(self, target: Target, deadline: float) -> Wire:
        now = self.loop.time()
        if deadline <= now:
            raise NotSent(f"no time was left to call {target.origin}", timed_out=True)
        try:
            async with asyncio.timeout_at(min(deadline, now + self.connect_timeout)):
                wire = await self._open(target)
        except TimeoutError:
            raise NotSent(f"connecting to {target.origin} took too long", timed_out=True) from None
        except ssl.SSLError as error:
            reason = getattr(error, "verify_message", None) or getattr(error, "reason", None) or error
            raise NotSent(f"no TLS with {target.origin}: {reason}") from error
        except OSError as error:
            raise NotSent(f"cannot connect to {target.origin}: {error.strerror or error}") from error
        self._wires.add(wire)
        return wire

    async def _open(self, target: Target) -> Wire:
        """Connect to the first address that answers, with the name checked by TLS."""
        if target.scheme == "unix":
            return await self._dial_unix(target)
        hosts = [target.host] if self._resolve is None else await self._resolve(target.host, target.port)
        failure: OSError = OSError(f"{target.host} has no address")
        for host in hosts:
            try:
                return await self._dial(target, host)
            except ssl.SSLError:
                raise
            except OSError as error:
                failure = error
        raise failure

    async def _dial(self, target: Target, host: str) -> Wire:
        secure = target.scheme == "https"
        _, wire = await self.loop.create_connection(
            lambda: Wire(self, target),
            host,
            target.port,
            ssl=self._tls() if secure else None,
            server_hostname=target.host if secure else None,
        )
        if secure and (self.fingerprint is not None or self._verify is not None):
            try:
                self._check(wire)
            except ssl.SSLError:
                wire.abort()
                raise
        return wire

    def _check(self, wire: Wire) -> None:
        """Look at the certificate itself, beside what TLS has verified."""
        assert wire.transport is not None
        shown = wire.transport.get_extra_info("ssl_object")
        if self.fingerprint is not None:
            check_fingerprint(shown, self.fingerprint)
        if self._verify is not None:
            self._verify(shown.getpeercert(binary_form=True) or b"")

    async def _dial_unix(self, target: Target) -> Wire:
        path = Path(target.host)
        check_owner(path)
        with reachable(path) as name:
            _, wire = await self.loop.create_unix_connection(lambda: Wire(self, target), name)
        return wire

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = client_context(fingerprint=self.fingerprint)
        return self._context

    def release(self, wire: Wire) -> None:
        """An exchange ended well: keep its connection for the next one, rather than one unused for longer."""
        idle = self._idle.setdefault(wire.target.origin, [])
        if len(idle) >= self.max_idle:
            idle.pop(0).abort()
        wire.deadline = math.inf
        del wire.sending  # and the request with it, which may be large
        wire.idle_since = now = wire.loop.time()
        idle.append(wire)
        if now + self.idle_seconds < self.sweep_at:
            self.sweep_by(now + self.idle_seconds)

    def forget(self, wire: Wire) -> None:
        """A connection is gone."""
        self._wires.discard(wire)
        idle = self._idle.get(wire.target.origin)
        if idle is not None and wire in idle:
            idle.remove(wire)
            if not idle:
                del self._idle[wire.target.origin]

    # -- deadlines

    def sweep_by(self, when: float) -> None:
        """Have the one timer fire no later than `when`."""
        if when >= self.sweep_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self.sweep_at = when
        self._timer = self.loop.call_at(when, self._sweep)

    def _sweep(self) -> None:
        """Expire what is late, close what was idle too long, and sleep until the next of either."""
        self._timer = None
        self.sweep_at = math.inf
        now = self.loop.time() + 0.001
        following = math.inf
        for wire in tuple(self._wires):
            when = wire.deadline if wire.busy else wire.idle_since + self.idle_seconds
            if when > now:
                following = min(following, when)
            elif wire.busy:
                wire.expire()
            else:
                wire.abort()
        self.sweep_by(following)

    async def aclose(self) -> None:
        """Close every connection; requests still in flight end in `Lost`."""
        for wire in tuple(self._wires):
            wire.fail(Lost(f"the connection to {wire.target.origin} was closed on this side"))
        self._idle.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.sweep_at = math.inf
        await asyncio.sleep(0)


def encode_request(
    method: str, target: Target, path: bytes, headers: Sequence[Header], body: bytes | None
) -> bytes:
    """The request as bytes. A path or header that could be read as more than one is a ValueError."""
    short = len(path) + sum(len(value) for _, value in headers) <= LONGEST_KEPT
    encode = kept_head if short else request_head
    head = encode(method, target.base + path or b"/", target.tail, tuple(headers))
    if body is None and method in ("GET", "HEAD", "DELETE", "OPTIONS"):
        return head + b"\r\n"
    body = body or b""
    return b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)


def request_head(method: str, path: bytes, tail: bytes, headers: tuple[Header, ...]) -> bytes:
    """The lines before the body's length."""
    if method not in METHODS or not PRINTABLE.fullmatch(path):
        raise ValueError("a request needs a known method and a path of printable ASCII without #")
    return b"%b %b%b%b" % (method.encode("ascii"), path, tail, header_lines(headers))


kept_head = lru_cache(maxsize=256)(request_head)
"""Most requests to a server share their head."""


def check_headers(headers: Sequence[Header]) -> None:
    """Refuse, when it is configured, a header that would break requests or that this pool sets itself."""
    for name, value in headers:
        if not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise ConfigError(f"{name!r} is not a header name")
        if name.lower() in OURS:
            raise ConfigError(f"the header {name.decode('ascii')} is set by the gateway itself; remove it")
        if not re.fullmatch(rb"[\t -~\x80-\xff]*", value):
            raise ConfigError(f"the value of the header {name.decode('ascii')} has a control character")

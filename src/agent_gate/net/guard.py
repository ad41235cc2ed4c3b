"""Who a request says it is meant for, and from where: Host and Origin allow-lists, and login backoff.

A browser that was led to this listener by a rebound name or a foreign page says so in these headers;
the answer is a refusal before any handler, or any WebSocket, exists.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable

from agent_gate.errors import ConfigError, RateLimited
from agent_gate.net.http import Request, Response, refusal

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HOST = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::([0-9]{1,5}))?")
ANY = frozenset({"0.0.0.0", "::", "[::]", ""})  # noqa: S104 - names to leave out, not to bind
DEFAULT_PORTS = frozenset({80, 443})


class HostGuard:
    """Exact allow-lists: loopback, `names`, and `allowed_hosts`, each with or without the port. `elsewhere` are paths
    that are answered under one more host."""

    def __init__(
        self,
        names: Iterable[str],
        port: int,
        allowed_hosts: Iterable[str] = (),
        elsewhere: tuple[frozenset[str], str] | None = None,
    ) -> None:
        self.any_origin: Callable[[str], bool] = lambda _path: False
        """Whether a page of any origin may use a path, because nothing there depends on who is logged in."""
        paths, host = elsewhere or (frozenset(), "")
        self._elsewhere = (paths, _allowed(host, port) if host else set())
        hosts: set[bytes] = set()
        for name in (*LOOPBACK, *names):
            if name not in ANY:
                hosts |= {bracketed(name), bracketed(name) + b":%d" % port}
        for name in allowed_hosts:
            hosts |= _allowed(name, port)
        self.hosts = frozenset(hosts)
        self.origins = frozenset(scheme + host for host in hosts for scheme in (b"http://", b"https://"))

    def check(self, request: Request) -> Response | None:
        """None lets the request through."""
        host = request.header(b"host")
        if host not in self.hosts:
            paths, hosts = self._elsewhere
            known = request.path in paths and host is not None and host.lower() in hosts
            refused = None if known else self._check_host(host)
            if refused is not None:
                return refused
        origin = request.header(b"origin")
        if origin is not None and origin.lower() not in self.origins and not self.any_origin(request.path):
            return self._foreign("Origin", _shown(origin))
        return None

    def _check_host(self, host: bytes | None) -> Response | None:
        if host is None or not HOST.fullmatch(host):
            return refusal(400, "INVALID_ARGS", "the Host header is missing or malformed; send host[:port]")
        if host.lower() in self.hosts:
            return None
        return self._foreign("Host", _shown(host))

    def _foreign(self, header: str, value: str) -> Response:
        message = (
            f"the {header} {value!r} is not one this gateway answers to. "
            "If it is meant, add its host name to gateway.allowed_hosts"
        )
        return refusal(403, "FORBIDDEN", message)


def bracketed(name: str) -> bytes:
    """A host name or address as it stands in a Host header."""
    plain = name.strip().lower().removeprefix("[").removesuffix("]")
    try:
        return (f"[{plain}]" if ":" in plain else plain).encode("idna" if not plain.isascii() else "ascii")
    except UnicodeError as error:
        raise ConfigError(f"{name!r} is not a host name: {error}") from None


def _allowed(name: str, port: int) -> set[bytes]:
    """An operator's entry: `host` also stands for its listener port, `host:port` only for itself."""
    match = HOST.fullmatch(name.strip().lower().encode("utf-8"))
    if match is not None and match[2] is not None:
        host = match[0]
        return {host, match[1]} if int(match[2]) in DEFAULT_PORTS else {host}
    host = bracketed(name)
    if not HOST.fullmatch(host):
        raise ConfigError(
            f"gateway.allowed_hosts: {name!r} is not a host; write host or host:port, such as gate.example.com"
        )
    return {host, host + b":%d" % port}


def _shown(value: bytes) -> str:
    return value[:100].decode("ascii", "replace")


class Backoff:
    """Failed logins per address: after `limit` within `window` seconds, how long to wait."""

    def __init__(self, limit: int = 10, window: float = 60.0, capacity: int = 4096) -> None:
        self.limit = limit
        self.window = window
        self.capacity = capacity
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def failed(self, peer: str, now: float) -> None:
        """Count one failure; the addresses that failed longest ago are forgotten first."""
        count, since = self._failures.pop(peer, (0, now))
        if now - since >= self.window:
            count, since = 0, now
        self._failures[peer] = (count + 1, since)
        while len(self._failures) > self.capacity:
            self._failures.popitem(last=False)

    def wait(self, peer: str, now: float) -> float:
        """Seconds until this address may try again; 0 when it may now."""
        count, since = self._failures.get(peer, (0, now))
        return max(0.0, since + self.window - now) if count >= self.limit else 0.0

    def refuse(self, peer: str, now: float, what: str) -> None:
        """Raise `RateLimited` where this address has to wait, since it had too many of these."""
        if wait := self.wait(peer, now):
            raise RateLimited(f"Too many {what}. Try again in {wait:.0f} s", retry_after=wait)

    def succeeded(self, peer: str) -> None:
        self._failures.pop(peer, None)

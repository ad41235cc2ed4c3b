"""Where OAuth may send requests: what the operator named may be private, what a server named must be public HTTPS.

Every name is resolved once, checked, and connected to as checked. No redirect is followed, no proxy of the
environment is used, and every answer is bounded in size and time.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from agent_gate.core.ports import Clock
from agent_gate.core.strict import MalformedJson, strict_json
from agent_gate.errors import ConfigError, DependencyUnavailable, Forbidden
from agent_gate.net.addresses import is_loopback, resolve_public
from agent_gate.net.http import Header
from agent_gate.net.pool import BadReply, Lost, NotSent, Pool, Target, TooLarge, WholeReply

SECONDS = 10.0
MOST_BYTES = 256 << 10
LONGEST_URL = 2048
SAFE_URL = re.compile(r"[A-Za-z0-9._~:/?\[\]@!&'()*+,;=%-]+")


class AuthorizationFault(DependencyUnavailable):
    """An authorization server, or a server's words about one, cannot be used; the message says why."""

    retryable = False


class Unreached(AuthorizationFault):
    """Nothing came back this time; asked again later, it may."""

    retryable = True


def check_url(url: object, what: str) -> str:
    """A web address in a form that can neither be read two ways nor mean anything to a shell or a terminal."""
    if not isinstance(url, str) or len(url) > LONGEST_URL or not SAFE_URL.fullmatch(url):
        raise AuthorizationFault(f"The {what} is not a plain web address")
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        raise AuthorizationFault(f"The {what} is not a plain web address") from None
    if parts.scheme not in ("https", "http") or not host or "@" in parts.netloc or parts.fragment:
        raise AuthorizationFault(f"The {what} must be https://host/path without a user or a fragment")
    if parts.scheme == "http" and not is_loopback(host):
        raise AuthorizationFault(f"The {what} is not HTTPS")
    return url


def origin_of(url: str) -> str:
    parts = urlsplit(url)
    default = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in (None, default) else f":{parts.port}"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{port}"


@dataclass(frozen=True, slots=True)
class Reach:
    """The addresses that the operator named, by which everything else is judged."""

    named: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *urls: str | None) -> "Reach":
        return cls(frozenset(origin_of(url) for url in urls if url))

    def allows_private(self, url: str) -> bool:
        """What was named by the operator; and on this machine, what a server on this machine names."""
        if origin_of(url) in self.named:
            return True
        here = any(is_loopback(urlsplit(origin).hostname or "") for origin in self.named)
        return here and is_loopback(urlsplit(url).hostname or "")


@dataclass(frozen=True, slots=True)
class WebAnswer:
    status: int
    headers: tuple[Header, ...]
    body: bytes

    def json(self, what: str) -> dict[str, Any]:
        try:
            found = strict_json(self.body)
        except MalformedJson:
            found = None
        if not isinstance(found, dict):
            raise AuthorizationFault(f"The {what} did not answer with a JSON object")
        return found


class Web:
    """Bounded requests under `Reach`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._named = Pool()
        self._public = Pool(resolve=resolve_public)

    async def aclose(self) -> None:
        await self._named.aclose()
        await self._public.aclose()

    async def get(self, url: str, reach: Reach, what: str, headers: Sequence[Header] = ()) -> WebAnswer:
        sent = [(b"accept", b"application/json"), *headers]
        return await self._ask("GET", url, reach, what, sent, None)

    async def post_form(
        self, url: str, form: Mapping[str, str], reach: Reach, what: str, headers: Sequence[Header] = ()
    ) -> WebAnswer:
        sent = [
            (b"accept", b"application/json"),
            (b"content-type", b"application/x-www-form-urlencoded"),
            *headers,
        ]
        return await self._ask("POST", url, reach, what, sent, urlencode(form).encode())

    async def post_json(self, url: str, body: bytes, reach: Reach, what: str) -> WebAnswer:
        sent = [(b"accept", b"application/json"), (b"content-type", b"application/json")]
        return await self._ask("POST", url, reach, what, sent, body)

    async def _ask(
        self,
        method: str,
        url: str,
        reach: Reach,
        what: str,
        headers: Sequence[Header],
        body: bytes | None,
    ) -> WebAnswer:
        check_url(url, what)
        pool = self._named if reach.allows_private(url) else self._public
        reply = await self._exchange(pool, method, url, what, headers, body)
        return WebAnswer(reply.status, tuple(reply.headers), reply.body)

    async def _exchange(
        self, pool: Pool, method: str, url: str, what: str, headers: Sequence[Header], body: bytes | None
    ) -> WholeReply:
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            target = Target.parse(origin_of(url))
            return await pool.request(
                method,
                target,
                path.encode(),
                headers,
                body,
                deadline=self._clock.monotonic() + SECONDS,
                max_bytes=MOST_BYTES,
            )
        except Forbidden as error:
            raise AuthorizationFault(f"The {what} is refused: {error.message}") from None
        except (NotSent, Lost) as error:
            raise Unreached(f"The {what} cannot be reached: {error}") from None
        except (BadReply, TooLarge, ConfigError) as error:
            raise AuthorizationFault(f"The {what} cannot be reached: {error}") from None

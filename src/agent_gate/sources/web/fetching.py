"""Requests to addresses that an agent named: only to public hosts, at every hop, connected to as checked."""

import re
from collections.abc import Sequence
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

import msgspec

from agent_gate.errors import CallTimeout, ConfigError, Forbidden, InvalidArgs, UpstreamError
from agent_gate.net.addresses import PrivateHosts
from agent_gate.net.http import Header
from agent_gate.net.pool import BadReply, Lost, NotSent, Pool, Target, TooLarge, WholeReply

MOST_HOPS = 10
LONGEST_URL = 8192
REDIRECTS = frozenset({301, 302, 303, 307, 308})
SAFE = "!#$%&'()*+,/:;=?@[]~"
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
AGENT: Header = (b"user-agent", b"agent-gate")


class Fetched(msgspec.Struct, frozen=True):
    """What came, and from where in the end."""

    url: str
    status: int
    content_type: str
    body: bytes


def complete_url(text: str) -> str:
    """What a person or an agent would type, as an address: `example.com/a b` is `https://example.com/a%20b`."""
    text = text.strip()
    if len(text) > LONGEST_URL or not text:
        raise InvalidArgs("url must be an address such as https://example.com/page")
    if not SCHEME.match(text) or re.match(r"[^/?#]+:\d+(?:[/?#]|$)", text):
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
        host, _port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
    except (ValueError, UnicodeError):
        raise InvalidArgs("url must be an address such as https://example.com/page") from None
    if parts.scheme not in ("http", "https"):
        raise Forbidden(f"Only http and https addresses are read, not {parts.scheme}:")
    if not host or "@" in parts.netloc:
        raise InvalidArgs("url must name a host, and no user or password")
    netloc = parts.netloc.replace(parts.hostname or "", host) if ":" not in host else parts.netloc
    path, query = quote(parts.path or "/", safe=SAFE), quote(parts.query, safe=SAFE)
    return urlunsplit((parts.scheme, netloc, path, query, ""))


class WebClient:
    """GET requests: bounded in size, time and hops."""

    def __init__(self, private: PrivateHosts, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._checked = Pool(resolve=private.resolve)
        self._named = Pool()

    async def aclose(self) -> None:
        await self._checked.aclose()
        await self._named.aclose()

    async def read(self, url: str, deadline: float, accept: bytes = b"text/html,*/*;q=0.8") -> Fetched:
        """A page, through its redirects; each address is checked like the first."""
        address = complete_url(url)
        for _ in range(MOST_HOPS):
            reply = await self._get(self._checked, address, [(b"accept", accept), AGENT], deadline)
            location = reply.header(b"location")
            if reply.status not in REDIRECTS or location is None:
                kind = (reply.header(b"content-type") or b"").decode("latin-1")
                return Fetched(address, reply.status, kind, reply.body)
            address = complete_url(urljoin(address, location.decode("latin-1")))
        raise UpstreamError(f"The page redirects more than {MOST_HOPS} times")

    async def ask(self, url: str, deadline: float, headers: Sequence[Header] = ()) -> Fetched:
        """A service that the operator or we named; it may be private, and redirects to nowhere."""
        reply = await self._get(self._named, url, [(b"accept", b"*/*"), AGENT, *headers], deadline)
        kind = (reply.header(b"content-type") or b"").decode("latin-1")
        return Fetched(url, reply.status, kind, reply.body)

    async def _get(self, pool: Pool, url: str, headers: Sequence[Header], deadline: float) -> WholeReply:
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        try:
            target = Target.parse(f"{parts.scheme}://{parts.netloc}")
            return await pool.request(
                "GET",
                target,
                path.encode(),
                headers,
                deadline=deadline,
                max_bytes=self._max_bytes,
                idempotent=True,
            )
        except (NotSent, Lost) as error:
            if error.timed_out:
                raise CallTimeout(f"{parts.hostname} did not answer in time") from None
            raise UpstreamError(f"{parts.hostname} cannot be reached: {error}") from None
        except TooLarge:
            raise UpstreamError(f"The page is larger than {self._max_bytes >> 20} MB") from None
        except (BadReply, ConfigError, ValueError) as error:
            raise UpstreamError(f"{parts.hostname} cannot be read: {error}") from None

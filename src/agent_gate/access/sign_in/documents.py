"""Client-metadata documents: who a client is whose id is an HTTPS address, read from there under bounds."""

import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from agent_gate.access.sign_in.faults import SignInFault, too_many
from agent_gate.core.ports import Clock
from agent_gate.net.addresses import network_of
from agent_gate.net.guard import Backoff
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Unreached, Web, WebAnswer

log = logging.getLogger("agent_gate.oauth")
MOST_BYTES = 5 << 10
LONGEST_ID = 1024
LEAST_KEPT, MOST_KEPT = 60.0, 24 * 3600.0
MOST_DOCUMENTS = 500
PER_MINUTE = 20
MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
SECRET = ("client_secret", "client_secret_expires_at")
SHARED = ("client_secret_basic", "client_secret_post", "client_secret_jwt")


def fault(why: str) -> SignInFault:
    return SignInFault("invalid_client", f"The client's document {why}", 401)


def check_id(client_id: str) -> str:
    """The address of a document in a form that can be read only one way."""
    try:
        parts = urlsplit(client_id)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise fault("has no plain address") from None
    steps = parts.path.split("/")
    plain = parts.scheme == "https" and host and len(parts.path) > 1 and len(client_id) <= LONGEST_ID
    if not plain or "@" in parts.netloc or "#" in client_id or "." in steps or ".." in steps:
        raise fault("has no plain address: https://host/path without a user, a fragment or dot segments")
    return client_id


class ClientDocuments:
    """Reads each again when its time is over; what could not be read is never remembered."""

    def __init__(self, web: Web, clock: Clock, allowed: Callable[[], bool] = lambda: True) -> None:
        self._web, self._clock, self._allowed = web, clock, allowed
        self._kept: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()
        self._read = Backoff(limit=PER_MINUTE)

    async def read(self, client_id: str, address: str) -> dict[str, Any]:
        if not self._allowed():
            raise fault("is not read here: auth.client_documents is false. Register the client")
        check_id(client_id)
        now = self._clock.monotonic()
        known = self._kept.get(client_id)
        if known is not None and known[0] > now:
            return known[1]
        network = network_of(address)
        if wait := self._read.wait(network, now):
            raise too_many("Too many documents of clients were asked for.", wait)
        self._read.failed(network, now)
        try:
            answer = await self._fetch(client_id)
        except Unreached as error:
            return self._earlier(client_id, error)
        body = read_document(client_id, answer)
        self._kept.pop(client_id, None)
        self._kept[client_id] = (now + kept_for(answer), body)
        while len(self._kept) > MOST_DOCUMENTS:
            self._kept.popitem(last=False)
        return body

    async def _fetch(self, client_id: str) -> WebAnswer:
        """What stands there; `Unreached` where its host does not answer for now."""
        try:
            answer = await self._web.get(client_id, Reach(), "client's document")
        except Unreached:
            raise
        except AuthorizationFault as error:
            raise fault(f"cannot be read: {error.message}") from None
        if answer.status == 429 or answer.status >= 500:
            raise Unreached(f"its host answered with {answer.status}")
        return answer

    def _earlier(self, client_id: str, why: Unreached) -> dict[str, Any]:
        """What stood there the last time, while its host is away: nobody who is in has to sign in anew for that."""
        until, body = self._kept.get(client_id, (-MOST_KEPT, {}))
        if until + MOST_KEPT <= self._clock.monotonic():
            said = f"The client's document cannot be read now: {why.message}. Try again later"
            raise SignInFault("temporarily_unavailable", said, 503, 30.0)
        log.warning("A client's document was not read again", extra={"client": client_id, "why": why.message})
        return body


def read_document(client_id: str, answer: WebAnswer) -> dict[str, Any]:
    if answer.status != 200:
        raise fault(f"answered with {answer.status}; only 200 counts, and no redirect is followed")
    if len(answer.body) > MOST_BYTES:
        raise fault("is larger than 5 KiB")
    try:
        body = answer.json("client's document")
    except AuthorizationFault:
        raise fault("is no JSON object") from None
    if body.get("client_id") != client_id:
        raise fault("names another client_id than its own address")
    if any(name in body for name in SECRET) or body.get("token_endpoint_auth_method") in SHARED:
        raise fault("speaks of a shared secret, which a public document cannot keep")
    return body


def kept_for(answer: WebAnswer) -> float:
    """How long its words count, by its own headers within bounds."""
    said = b", ".join(value for name, value in answer.headers if name.lower() == b"cache-control").decode(
        "latin-1"
    )
    if "no-store" in said or "no-cache" in said:
        return LEAST_KEPT
    found = MAX_AGE.search(said)
    return min(MOST_KEPT, max(LEAST_KEPT, float(found[1]) if found else LEAST_KEPT))

"""Clients that ask to come in. Nothing they say of themselves is trusted: a name is a claim, an address is a fact.

One that registers is kept under a random id, and the same words give the same client. One whose id is the address of
a document is described by what stands there.
"""

import re
import secrets
from collections import deque
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import msgspec

from agent_gate.access.sign_in.documents import ClientDocuments
from agent_gate.access.sign_in.faults import SignInFault, too_many, unknown_client
from agent_gate.access.sign_in.redirects import check_redirects, destination, is_loopback, portless
from agent_gate.core.ports import Clock
from agent_gate.net.addresses import network_of
from agent_gate.net.forwarded import is_address
from agent_gate.store.statement import Conflict, Statement, Store
from agent_gate.vault.oauth.reach import AuthorizationFault, check_url

LONGEST_NAME = 100
PER_ADDRESS, IN_ALL, WINDOW = 20, 120, 60.0
"""Registrations of new clients in a minute, from one address and from all together."""
MOST_ADDRESSES = 4096
MOST_UNUSED = 1000
SPARED_SECONDS = 1800.0
"""As long as a sign-in can take: a flood of others does not drop a client that waits for its yes."""
UNUSED_SECONDS = 24 * 3600.0
KEPT_SECONDS = 400 * 24 * 3600.0
INSERT = "INSERT INTO sign_in_clients (id, digest, created_at, body) VALUES (?, ?, ?, ?)"
FORGET = "DELETE FROM sign_in_clients WHERE (used_at IS NULL AND created_at < ?) OR (used_at IS NOT NULL AND used_at < ?)"
MAKE_ROOM = (
    "DELETE FROM sign_in_clients WHERE used_at IS NULL AND created_at < ? AND id NOT IN "
    "(SELECT id FROM sign_in_clients WHERE used_at IS NULL ORDER BY created_at DESC LIMIT ?)"
)
GRANTS = ("authorization_code", "refresh_token")
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
PRIVATE_KEY = "private_key_jwt"
MOST_KEYS = 8
PRIVATE_PARTS = frozenset({"d", "p", "q", "k"})
WORD = re.compile(r"[a-z0-9]+")
DEFAULT_LABELS = frozenset({"www", "app", "api", "auth", "login"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInClient:
    """`name` is what it calls itself; `keys` is a JWK set with which it proves itself, or `keys_url` where that is. One
    that has neither does not."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    keys: dict[str, Any] | None = None
    keys_url: str = ""

    @property
    def proves_itself(self) -> bool:
        return self.keys is not None or bool(self.keys_url)

    def slug(self, redirect_uri: str) -> str:
        """The first half of its agent's name: whose address the answer goes to, or on loopback what it calls itself."""
        if is_loopback(redirect_uri):
            words = WORD.findall(self.name.lower()) or ["client"]
            return "-".join(words)[:40].strip("-")
        if redirect_uri.startswith("https://"):
            host: str = urlsplit(redirect_uri).hostname or ""
            named = [label for label in host.split(".")[:-1] if label not in DEFAULT_LABELS]
            own = host if is_address(host) else (named or host.split("."))[-1]
            return "-".join(WORD.findall(own))[:40]
        scheme: str = WORD.findall(destination(redirect_uri))[0]
        return scheme[:40]


def is_document(client_id: str) -> bool:
    return client_id.startswith("https://")


def claimed_name(value: object) -> str:
    """A name as it is kept: short, and text."""
    return value[:LONGEST_NAME] if isinstance(value, str) else ""


class SignInClients:
    """Registers and finds. What nobody used for a day is forgotten."""

    def __init__(self, store: Store, clock: Clock, documents: ClientDocuments) -> None:
        self._store, self._clock, self._documents = store, clock, documents
        self._recent: dict[str, deque[float]] = {}
        self._welcome: dict[str, float] = {}

    async def find(self, client_id: str, address: str = "") -> SignInClient:
        if is_document(client_id):
            body = await self._documents.read(client_id, address)
            return SignInClient(
                id=client_id,
                name=claimed_name(body.get("client_name")),
                redirect_uris=check_redirects(body.get("redirect_uris")),
                keys=claimed_keys(body),
                keys_url=claimed_keys_url(body),
            )
        rows = await self._store.read("SELECT body FROM sign_in_clients WHERE id = ?", (client_id[:200],))
        if not rows:
            raise unknown_client()
        return read_client(client_id, rows[0][0])

    async def register(self, asked: dict[str, Any], address: str) -> SignInClient:
        """The client of these words, which may be there already; a new one counts against the limits."""
        name, uris = claimed_name(asked.get("client_name")), check_redirects(asked.get("redirect_uris"))
        check_metadata(asked)
        keys, place = claimed_keys(asked), claimed_keys_url(asked)
        words = msgspec.json.encode([name, [portless(uri) for uri in uris], *filter(None, (keys, place))])
        digest, now = sha256(words).hexdigest(), self._clock.now()
        client = SignInClient(
            id=f"agcl_{secrets.token_urlsafe(24)}", name=name, redirect_uris=uris, keys=keys, keys_url=place
        )
        if (known := await self._find_same(digest)) is not None:
            return replace(client, id=known.id)
        self._count(address)
        try:
            await self._store.write(
                Statement(INSERT, (client.id, digest, now, kept_body(client))),
                Statement(MAKE_ROOM, (now - SPARED_SECONDS, MOST_UNUSED)),
            )
        except Conflict:
            known = await self._find_same(digest)
            if known is None:
                raise
            return known
        return client

    async def _find_same(self, digest: str) -> SignInClient | None:
        rows = await self._store.read("SELECT id, body FROM sign_in_clients WHERE digest = ?", (digest,))
        return read_client(*rows[0]) if rows else None

    def welcome(self, address: str, seconds: float) -> None:
        """Somebody there has an invitation: no flood from elsewhere keeps their client from registering."""
        now = self._clock.monotonic()
        self._welcome = {one: ends for one, ends in self._welcome.items() if ends > now}
        if len(self._welcome) < MOST_ADDRESSES:
            self._welcome[network_of(address)] = now + seconds

    def _count(self, address: str) -> None:
        address, now = network_of(address), self._clock.monotonic()
        if len(self._recent) >= MOST_ADDRESSES:
            self._recent = {one: times for one, times in self._recent.items() if times[-1] > now - WINDOW}
        for key, most in (("", IN_ALL), (address, PER_ADDRESS)):
            times = self._recent.setdefault(key, deque())
            while times and times[0] <= now - WINDOW:
                times.popleft()
            if len(times) >= most and (key or self._welcome.get(address, 0.0) <= now):
                raise too_many("Too many clients register at once.", max(1.0, times[0] + WINDOW - now))
        for key in ("", address):
            self._recent[key].append(now)

    def beginning(self, client_id: str) -> Statement:
        """Goes with a sign-in that begins: the client counts as new."""
        return Statement(
            "UPDATE sign_in_clients SET created_at = ? WHERE id = ? AND used_at IS NULL",
            (self._clock.now(), client_id),
        )

    def using(self, client_id: str) -> list[Statement]:
        """Goes with a person's yes: the client is kept from now on."""
        if is_document(client_id):
            return []
        return [
            Statement("UPDATE sign_in_clients SET used_at = ? WHERE id = ?", (self._clock.now(), client_id))
        ]

    async def forget_unused(self) -> None:
        now = self._clock.now()
        await self._store.write(Statement(FORGET, (now - UNUSED_SECONDS, now - KEPT_SECONDS)))


def kept_body(client: SignInClient) -> str:
    kept = {
        "name": client.name,
        "redirect_uris": client.redirect_uris,
        **({"keys": client.keys} if client.keys else {}),
        **({"keys_url": client.keys_url} if client.keys_url else {}),
    }
    return msgspec.json.encode(kept).decode()


def read_client(client_id: str, body: str) -> SignInClient:
    kept = msgspec.json.decode(body)
    return SignInClient(
        id=client_id,
        name=kept["name"],
        redirect_uris=tuple(kept["redirect_uris"]),
        keys=kept.get("keys"),
        keys_url=kept.get("keys_url", ""),
    )


def claimed_keys_url(asked: dict[str, Any]) -> str:
    """Where a client publishes the keys with which it will prove itself; empty where they stand in its own words, or it
    does not."""
    url = asked.get("jwks_uri")
    if asked.get("token_endpoint_auth_method") != PRIVATE_KEY or url is None:
        return ""
    if asked.get("jwks") is not None:
        raise SignInFault("invalid_client_metadata", "A client has jwks or jwks_uri, not both (RFC 7591)")
    try:
        found = check_url(url, "jwks_uri")
    except AuthorizationFault as error:
        raise SignInFault("invalid_client_metadata", error.message) from None
    if not found.startswith("https://"):
        raise SignInFault("invalid_client_metadata", "jwks_uri is an https:// address")
    return found


def claimed_keys(asked: dict[str, Any]) -> dict[str, Any] | None:
    """The keys with which a client says that it will prove itself, where they stand in its own words."""
    if asked.get("token_endpoint_auth_method") != PRIVATE_KEY or claimed_keys_url(asked):
        return None
    keys = asked.get("jwks")
    listed = keys.get("keys") if isinstance(keys, dict) else None
    if not isinstance(listed, list) or not 0 < len(listed) <= MOST_KEYS:
        raise SignInFault(
            "invalid_client_metadata",
            f"private_key_jwt needs jwks with 1 to {MOST_KEYS} public keys, or a jwks_uri where they are",
        )
    if any(not isinstance(one, dict) or PRIVATE_PARTS & one.keys() for one in listed):
        raise SignInFault("invalid_client_metadata", "jwks has something that is no public key")
    return {"keys": listed}


def check_metadata(asked: dict[str, Any]) -> None:
    """Refuse a client that could do nothing with what is offered here."""
    grants, responses = asked.get("grant_types"), asked.get("response_types")
    if isinstance(grants, list) and "authorization_code" not in grants and JWT_BEARER not in grants:
        raise SignInFault(
            "invalid_client_metadata",
            f"grant_types has neither authorization_code nor {JWT_BEARER}, the ways in",
        )
    if isinstance(responses, list) and "code" not in responses:
        raise SignInFault("invalid_client_metadata", "response_types has no code, the only answer there is")

"""What people made on the page or in the terminal: agent tokens, operator tokens, login links and page sessions.

Only hashes are kept, in the table `tokens`; memory holds a copy for looking them up. What can be used once is taken out
of the store, so that it is used on one gateway only.
"""

import hmac
import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from agent_gate.access.tokens import digest, new_token
from agent_gate.core.call import Caller
from agent_gate.core.ports import Clock
from agent_gate.errors import InvalidArgs
from agent_gate.store.statement import Conflict, Statement, Store
from agent_gate.store.steady import read_steady

KeyKind = Literal["agent", "operator", "session", "person", "link"]
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
INSERT = (
    "INSERT INTO tokens (name, hash, created_at, revoked_at, body) VALUES (?, ?, ?, NULL, ?) "
    "ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, created_at = excluded.created_at, revoked_at = NULL, "
    "body = excluded.body WHERE tokens.revoked_at IS NOT NULL"
)
END_SESSIONS = Statement("DELETE FROM tokens WHERE name LIKE 'session:%' OR name LIKE 'link:%'")
LIVE = "SELECT name, hash, created_at, body FROM tokens WHERE revoked_at IS NULL"
FIND = "SELECT name, created_at, body FROM tokens WHERE hash = ? AND revoked_at IS NULL"
TAKE = "DELETE FROM tokens WHERE name = ? AND hash = ? AND revoked_at IS NULL"
RENEW = "UPDATE tokens SET body = ? WHERE name = ? AND revoked_at IS NULL"
REVOKE = "UPDATE tokens SET revoked_at = ? WHERE name = ? AND revoked_at IS NULL"


@dataclass(frozen=True, slots=True)
class Key:
    """One secret that was handed out once, as it is kept."""

    kind: KeyKind
    name: str
    digest: bytes
    created_at: float
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def person(self) -> str:
        return str(self.body.get("person", ""))


def caller_of(key: Key) -> Caller:
    """The agent that a token made here stands for."""
    body = dict(key.body)
    namespaces = body.pop("namespaces", None)
    body.pop("made_by", None)
    return Caller(name=key.name, namespaces=None if namespaces is None else frozenset(namespaces), **body)


def checked_name(name: object) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidArgs("A name has 1 to 64 letters, digits, dots, dashes or underscores")
    return name


class Keys:
    """Makes, finds and revokes; every change is durable before it counts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._live: dict[tuple[KeyKind, bytes], Key] = {}
        self._changes = 0

    async def load(self) -> None:
        """Have what the store has."""
        rows = await read_steady(lambda: self._changes, lambda: self._store.read(LIVE))
        self._live = {}
        for name, hashed, created_at, body in rows:
            kind, _, rest = name.partition(":")
            self._remember(
                Key(kind, rest, bytes.fromhex(hashed), created_at, msgspec.json.decode(body or "{}"))
            )

    def _remember(self, key: Key) -> None:
        self._changes += 1
        self._live[key.kind, key.digest] = key

    def _forget(self, place: tuple[KeyKind, bytes]) -> None:
        self._changes += 1
        self._live.pop(place, None)

    def list(self, kind: KeyKind) -> list[Key]:
        return sorted((key for key in self._live.values() if key.kind == kind), key=lambda key: key.name)

    def named(self, kind: KeyKind, name: str) -> Key | None:
        return next((key for key in self.list(kind) if key.name == name), None)

    def find(self, kind: KeyKind, secret: str) -> Key | None:
        """The live key of that secret. Secrets have 256 bits, so looking up their hash gives nothing away."""
        presented = digest(secret)
        found = self._live.get((kind, presented))
        return found if found is not None and hmac.compare_digest(found.digest, presented) else None

    async def make(self, kind: KeyKind, name: str, body: dict[str, Any], *also: Statement) -> str:
        """A new secret, durable with `also`; it is returned here and never again."""
        secret = new_token()
        key = Key(kind, name, digest(secret), self._clock.now(), body)
        text = msgspec.json.encode(body).decode()
        try:
            await self._store.write(
                Statement(INSERT, (f"{kind}:{name}", key.digest.hex(), key.created_at, text), expect=1),
                *also,
            )
        except Conflict:
            raise InvalidArgs(f"There is a live {kind} token named {name}; revoke it first") from None
        self._remember(key)
        return secret

    async def renew(self, kind: KeyKind, name: str, body: dict[str, Any]) -> None:
        """Keep something anew about a name, whether it was kept before or not."""
        known = self.named(kind, name)
        if known is None:
            await self.make(kind, name, body)
            return
        text = msgspec.json.encode(body).decode()
        await self._store.write(Statement(RENEW, (text, f"{kind}:{name}")))
        self._remember(replace(known, body=body))

    async def revoke(self, kind: KeyKind, name: str, *also: Statement) -> bool:
        """Take a key back, durable with `also`; false when there is none of that name."""
        for place, key in list(self._live.items()):
            if (key.kind, key.name) == (kind, name):
                await self._store.write(Statement(REVOKE, (self._clock.now(), f"{kind}:{name}")), *also)
                self._forget(place)
                return True
        return False

    async def take(self, kind: KeyKind, secret: str) -> Key | None:
        """The key of that secret, made on whichever gateway, for the one who takes it first."""
        presented = digest(secret)
        for name, created_at, body in await self._store.read(FIND, (presented.hex(),)):
            if not name.startswith(f"{kind}:"):
                continue
            try:
                await self._store.write(Statement(TAKE, (name, presented.hex()), expect=1))
            except Conflict:
                return None
            self._forget((kind, presented))
            return Key(kind, name.partition(":")[2], presented, created_at, msgspec.json.decode(body or "{}"))
        return None

    def list_over(self) -> tuple[Key, ...]:
        """Sessions and links whose time is over."""
        now = self._clock.now()
        ending = (*self.list("session"), *self.list("link"))
        return tuple(key for key in ending if key.body.get("expires_at", 0) <= now)

    async def purge(self) -> None:
        """Forget what is over."""
        for key in self.list_over():
            self._forget((key.kind, key.digest))
            self._store.post(Statement("DELETE FROM tokens WHERE name = ?", (f"{key.kind}:{key.name}",)))

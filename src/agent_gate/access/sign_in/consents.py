"""Sign-ins that wait for a person's login or for a person's yes, and the code that follows it.

Everything is in the store and each step is a compare-and-set, so that whichever gateway is asked goes on with it.
"""

import base64
import hmac
import secrets
from dataclasses import dataclass, replace

import msgspec

from agent_gate.access.sign_in.faults import too_many
from agent_gate.access.sign_in.request import AskedFor
from agent_gate.access.tokens import digest
from agent_gate.core.ports import Clock
from agent_gate.net.addresses import network_of
from agent_gate.store.statement import Conflict, Statement, Store

OPEN_SECONDS = 15 * 60.0
CODE_SECONDS = 60.0
ENOUGH_SECONDS = 30.0
"""A code that still counts for so long is handed out again to a browser that comes again."""
AFTER_YES_SECONDS = 10 * 60.0
"""How long a browser may take to come back for its code."""
KEPT_SECONDS = 24 * 3600.0
INVITE_SECONDS = 24 * 3600.0
PER_ADDRESS, IN_ALL = 5, 50
LOGIN_SECONDS = 10 * 60.0
LOGINS_PER_ADDRESS, LOGINS_IN_ALL = 100, 2000
"""Logins at the provider that may be under way at a time; nobody is asked about those."""
COLUMNS = "id, state, code_expires_at, family, expires_at, body, granted"
INSERT = (
    "INSERT INTO sign_ins (id, state, browser, request, address, created_at, expires_at, body) "
    "VALUES (?, 'asked', ?, ?, ?, ?, ?, ?)"
)
LOGIN = (
    "INSERT INTO sign_ins (id, state, browser, request, address, created_at, expires_at, body, code) "
    "VALUES (?, 'proving', ?, ?, ?, ?, ?, ?, ?)"
)
TAKE_LOGIN = (
    "UPDATE sign_ins SET state = 'proved', code = NULL "
    "WHERE id = ? AND state = 'proving' AND code = ? AND expires_at > ?"
)
PROVE = "UPDATE sign_ins SET state = 'asked', body = ?, expires_at = ? WHERE id = ? AND state = 'proved'"
GRANT = "UPDATE sign_ins SET state = 'granted', granted = ?, expires_at = ? WHERE id = ? AND state = 'asked'"
CODE = (
    "UPDATE sign_ins SET state = 'coded', code = ?, code_expires_at = ? "
    "WHERE id = ? AND state IN ('granted', 'coded') AND expires_at > ? AND COALESCE(code_expires_at, 0) = ?"
)
REDEEM = "UPDATE sign_ins SET state = 'done', family = ? WHERE id = ? AND code = ? AND state = 'coded'"
END = "UPDATE sign_ins SET state = 'over' WHERE id = ? AND state IN ('proved', 'asked', 'granted', 'coded')"
USE_INVITE = "UPDATE sign_in_invites SET used_at = ? WHERE digest = ? AND used_at IS NULL AND expires_at > ?"
COUNT = "SELECT COUNT(*) FROM sign_ins WHERE state = 'asked' AND expires_at > ? AND address <> ''"
NUMBERS = "SELECT body FROM sign_ins WHERE state = 'asked' AND expires_at > ?"
COUNT_LOGINS = "SELECT COUNT(*) FROM sign_ins WHERE state = 'proving' AND expires_at > ?"


class AgreedTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said yes to."""

    agent: str
    person: str
    namespaces: tuple[str, ...] | None
    mode: str
    days: float
    own: bool = False
    """Whether the person's login was the yes."""


class ProvedPerson(msgspec.Struct, frozen=True, kw_only=True):
    """Who logged in at the provider for a sign-in: the name they have here, and what the provider calls them."""

    person: str
    issuer: str
    subject: str
    session: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunSignIn:
    """One sign-in as it is kept; its id is that of its call. `flow` is a login that is under way, sealed; `proved` is
    whom it proved."""

    id: str
    state: str
    asked: AskedFor
    number: str
    expires_at: float
    granted: AgreedTerms | None = None
    family: str | None = None
    code_expires_at: float | None = None
    flow: str = ""
    proved: ProvedPerson | None = None


class KeptSignIn(msgspec.Struct, frozen=True, omit_defaults=True):
    asked: AskedFor
    number: str
    flow: str = ""
    proved: ProvedPerson | None = None


def login_digest(state: str) -> str:
    """What a login is found by while it is under way; no code of ours has it."""
    return digest(f"login:{state}").hex()


def request_digest(asked: AskedFor, *, login: bool) -> str:
    """What makes two requests of a browser the same one."""
    return digest(f"login:{asked.digest()}").hex() if login else asked.digest()


class SignInsBegun:
    """Begins, grants and ends; hands out codes."""

    def __init__(self, store: Store, clock: Clock, key: bytes) -> None:
        """`key` is what codes are made with, the same on all gateways of the store."""
        self._store, self._clock, self._key = store, clock, key

    async def find_same(self, browser: str, asked: AskedFor, *, login: bool = False) -> BegunSignIn | None:
        """The sign-in that this browser began already with exactly this."""
        return await self._find_one(
            "browser = ? AND request = ? AND state NOT IN ('over', 'proving', 'proved')",
            digest(browser).hex(),
            request_digest(asked, login=login),
        )

    async def find_of_browser(self, sign_in: str, browser: str) -> BegunSignIn | None:
        return await self._find_one("id = ? AND browser = ?", sign_in, digest(browser).hex())

    async def get(self, sign_in: str) -> BegunSignIn | None:
        return await self._find_one("id = ?", sign_in)

    async def find_by_code(self, code: str) -> BegunSignIn | None:
        return await self._find_one("code = ?", digest(code).hex())

    async def _find_one(self, where: str, *params: str) -> BegunSignIn | None:
        rows = await self._store.read(f"SELECT {COLUMNS} FROM sign_ins WHERE {where}", params)
        return read_row(rows[0]) if rows else None

    async def begin(
        self, sign_in: BegunSignIn, browser: str, peer: str, invite: str | None, *also: Statement
    ) -> None:
        """Keep a new one, with what is durable with it. Without an invitation, not more than so many may wait for
        people at a time."""
        now, address = self._clock.now(), network_of(peer)
        invited = invite is not None and await self.accepts_invite(invite)
        if invited:
            also = (*also, Statement(USE_INVITE, (now, digest(invite or "").hex(), now), expect=1))
        else:
            await self.check_room(address)
        body = kept_body(sign_in)
        params = (digest(browser).hex(), sign_in.asked.digest(), "" if invited else address)
        dead = Statement(
            "DELETE FROM sign_ins WHERE browser = ? AND request = ? AND state = 'over'", params[:2]
        )
        begun = Statement(INSERT, (sign_in.id, *params, now, sign_in.expires_at, body))
        await self._store.write(dead, begun, *also)

    async def begin_login(
        self, sign_in: BegunSignIn, browser: str, peer: str, state: str, *also: Statement
    ) -> None:
        """Keep one that waits for a login at the provider, in the place of one that this browser left there."""
        now, address = self._clock.now(), network_of(peer)
        await self._check_logins(address, now)
        params = (digest(browser).hex(), request_digest(sign_in.asked, login=True))
        left = "DELETE FROM sign_ins WHERE browser = ? AND request = ? AND state IN ('over', 'proving', 'proved')"
        body = kept_body(sign_in)
        begun = (sign_in.id, *params, address, now, sign_in.expires_at, body, login_digest(state))
        await self._store.write(Statement(left, params), Statement(LOGIN, begun), *also)

    async def _check_logins(self, address: str, now: float) -> None:
        [[from_all]] = await self._store.read(COUNT_LOGINS, (now,))
        [[from_here]] = await self._store.read(f"{COUNT_LOGINS} AND address = ?", (now, address))
        if from_here >= LOGINS_PER_ADDRESS or from_all >= LOGINS_IN_ALL:
            raise too_many("Too many logins are under way.", 60)

    async def take_login(self, browser: str, state: str) -> BegunSignIn | None:
        """The sign-in for which this browser comes back from the provider with this state; once."""
        found = await self._find_one(
            "browser = ? AND code = ? AND state = 'proving'", digest(browser).hex(), login_digest(state)
        )
        if found is None:
            return None
        taking = Statement(TAKE_LOGIN, (found.id, login_digest(state), self._clock.now()), expect=1)
        try:
            await self._store.write(taking)
        except Conflict:
            return None
        return found

    async def begin_proved(self, sign_in: BegunSignIn) -> None:
        """Keep one that began with the proof of its person, and has no browser."""
        now = self._clock.now()
        await self._store.write(
            Statement(INSERT, (sign_in.id, "", sign_in.id, "", now, sign_in.expires_at, kept_body(sign_in)))
        )

    async def prove(self, sign_in: BegunSignIn, proved: ProvedPerson, number: str) -> BegunSignIn:
        """Go on with a sign-in whose person is known now."""
        ends = self._clock.now() + OPEN_SECONDS
        known = replace(sign_in, state="asked", flow="", proved=proved, number=number, expires_at=ends)
        await self._store.write(Statement(PROVE, (kept_body(known), known.expires_at, known.id), expect=1))
        return known

    async def check_room(self, address: str) -> None:
        """Raise where so many wait for people that no other may."""
        now = self._clock.now()
        [[from_all]] = await self._store.read(COUNT, (now,))
        [[from_here]] = await self._store.read(f"{COUNT} AND address = ?", (now, address))
        if from_here >= PER_ADDRESS:
            raise too_many("Too many sign-ins from this address wait for a person.", 60)
        if from_all >= IN_ALL:
            raise too_many(
                "Too many sign-ins wait for a person. A link from `agent-gate agents invite` gets past this.",
                60,
            )

    async def read_numbers(self) -> set[str]:
        """The numbers that browsers show now."""
        rows = await self._store.read(NUMBERS, (self._clock.now(),))
        return {msgspec.json.decode(str(body), type=KeptSignIn).number for (body,) in rows}

    async def accepts_invite(self, invite: str) -> bool:
        rows = await self._store.read(
            "SELECT 1 FROM sign_in_invites WHERE digest = ? AND used_at IS NULL AND expires_at > ?",
            (digest(invite).hex(), self._clock.now()),
        )
        return bool(rows)

    async def invite(self, person: str) -> str:
        """The secret of a link by which one sign-in gets past the limits."""
        secret = secrets.token_urlsafe(32)
        await self._store.write(
            Statement(
                "INSERT INTO sign_in_invites (digest, made_by, expires_at) VALUES (?, ?, ?)",
                (digest(secret).hex(), person, self._clock.now() + INVITE_SECONDS),
            )
        )
        return secret

    async def drop(self, sign_in: str) -> None:
        """Forget one whose question could not be put."""
        await self._store.write(Statement("DELETE FROM sign_ins WHERE id = ?", (sign_in,)))

    async def grant(self, sign_in: str, terms: AgreedTerms) -> bool:
        """Take a person's yes over; false where the sign-in is over, or was granted before."""
        ends = self._clock.now() + AFTER_YES_SECONDS
        kept = msgspec.json.encode(terms).decode()
        try:
            await self._store.write(Statement(GRANT, (kept, ends, sign_in), expect=1))
        except Conflict:
            return False
        return True

    async def make_code(self, sign_in: BegunSignIn) -> str | None:
        """The code of a browser that comes back; None where it is too late. One that comes twice, by itself or because
        somebody reloads, gets the same: its client may be using the first."""
        if (known := self._counting_code(sign_in)) is not None:
            return known
        now, before = self._clock.now(), sign_in.code_expires_at or 0.0
        ends = now + CODE_SECONDS
        code = self._made_code(sign_in.id, ends)
        try:
            await self._store.write(
                Statement(CODE, (digest(code).hex(), ends, sign_in.id, now, before), expect=1)
            )
        except Conflict:
            kept = await self.get(sign_in.id)
            return self._counting_code(kept) if kept is not None else None
        return code

    def _counting_code(self, sign_in: BegunSignIn) -> str | None:
        """The code that was handed out, while it counts for long enough."""
        ends = sign_in.code_expires_at
        if sign_in.state != "coded" or ends is None or ends - self._clock.now() < ENOUGH_SECONDS:
            return None
        return self._made_code(sign_in.id, ends)

    def _made_code(self, sign_in: str, ends: float) -> str:
        """Nobody without the key can tell it, and the store has only its hash."""
        made = hmac.digest(self._key, f"code\0{sign_in}\0{ends!r}".encode(), "sha256")
        return f"agc_{base64.urlsafe_b64encode(made).decode().rstrip('=')}"

    def redeeming(self, sign_in: BegunSignIn, code: str, family: str) -> Statement:
        """Goes with the first tokens: the code is used up."""
        return Statement(REDEEM, (family, sign_in.id, digest(code).hex()), expect=1)

    async def end(self, sign_in: str) -> None:
        await self._store.write(Statement(END, (sign_in,)))

    async def forget_old(self) -> None:
        before = self._clock.now() - KEPT_SECONDS
        await self._store.write(
            Statement("DELETE FROM sign_ins WHERE expires_at < ?", (before,)),
            Statement("DELETE FROM sign_in_invites WHERE expires_at < ?", (before,)),
        )


def kept_body(sign_in: BegunSignIn) -> str:
    kept = KeptSignIn(sign_in.asked, sign_in.number, sign_in.flow, sign_in.proved)
    return msgspec.json.encode(kept).decode()


def read_row(row: tuple[object, ...]) -> BegunSignIn:
    ident, state, code_expires_at, family, expires_at, body, granted = row
    kept = msgspec.json.decode(str(body), type=KeptSignIn)
    return BegunSignIn(
        id=str(ident),
        state=str(state),
        asked=kept.asked,
        number=kept.number,
        expires_at=float(str(expires_at)),
        granted=msgspec.json.decode(str(granted), type=AgreedTerms) if granted else None,
        family=str(family) if family else None,
        code_expires_at=float(str(code_expires_at)) if code_expires_at is not None else None,
        flow=kept.flow,
        proved=kept.proved,
    )

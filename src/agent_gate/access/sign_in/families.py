"""Agents that came in by signing in, and their tokens.

Each sign-in is a family of tokens: access tokens of an hour, and refresh tokens of which each use gives the next. One
that is used again long after is somebody else's copy, and ends the family. Memory has what is live, so that a call
finds its token as it finds one from a file; the store decides.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import get_args

import msgspec

from agent_gate.access.sign_in.consents import AgreedTerms
from agent_gate.access.sign_in.faults import dead_grant, too_many
from agent_gate.access.sign_in.request import scope_of
from agent_gate.access.tokens import Credential, digest
from agent_gate.core.call import Caller, Mode, new_id
from agent_gate.core.ports import Clock
from agent_gate.store.statement import Conflict, Record, Statement, Store
from agent_gate.store.steady import read_steady

ACCESS_SECONDS = 3600.0
GRACE_SECONDS = 120.0
"""How long a refresh token that was used may be sent again: real clients do, from several processes at once."""
MOST_LIVE = 100
"""Access tokens of one sign-in that count at a time."""
DAY = 86_400.0
MODES = get_args(Mode)
CHALLENGED_IN_RESULTS = frozenset({"chatgpt.com"})
"""Where the answers of clients go that read in results, not in a status, that they should ask for more."""
AGENT_COLUMNS = "name, client, person, created_at, expires_at, seen_at, body"
UPSERT = (
    "INSERT INTO signed_in_agents (name, client, person, created_at, expires_at, seen_at, revoked_at, body) "
    "VALUES (?, ?, ?, ?, ?, ?, NULL, ?) ON CONFLICT (name) DO UPDATE SET client = excluded.client, "
    "person = excluded.person, expires_at = excluded.expires_at, seen_at = excluded.seen_at, "
    "revoked_at = NULL, body = excluded.body, "
    "created_at = CASE WHEN signed_in_agents.revoked_at IS NULL THEN signed_in_agents.created_at ELSE excluded.created_at END "
    "WHERE (signed_in_agents.client = excluded.client AND (? OR signed_in_agents.person = excluded.person)) "
    "OR signed_in_agents.revoked_at IS NOT NULL OR signed_in_agents.expires_at <= excluded.created_at"
)
"""A name stays its client's; and its person's, unless somebody else said yes to another."""
FAMILY_COLUMNS = "id, agent, client, resource, vouched"
FAMILY = f"INSERT INTO token_families ({FAMILY_COLUMNS}, created_at) VALUES (?, ?, ?, ?, ?, ?)"
TOKEN = "INSERT INTO family_tokens (digest, family, kind, expires_at) VALUES (?, ?, ?, ?)"  # noqa: S105
USE = "UPDATE family_tokens SET used_at = ? WHERE digest = ? AND used_at IS NULL"
LIVE = "SELECT COUNT(*) FROM family_tokens WHERE family = ? AND kind = 'access' AND expires_at > ?"
ALIVE = "UPDATE token_families SET revoked_at = NULL WHERE id = ? AND revoked_at IS NULL"
"""Touches the row of a family that is alive, so that no token is given to one that was revoked meanwhile."""


def family_proof(family: str) -> bytes:
    """What is kept of a session's token. No token can have it for a digest: it has another length."""
    return b"family:" + family.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInAgent:
    """`client` is the id of the client that it is."""

    name: str
    client: str
    person: str
    created_at: float
    expires_at: float
    seen_at: float
    terms: AgreedTerms
    destination: str = ""

    def body(self) -> str:
        """What of it is kept beside its columns."""
        return msgspec.json.encode(AgentBody(self.terms, self.destination)).decode()

    def caller(self, likeness: Caller, audience: str = "") -> Caller:
        spaces = self.terms.namespaces
        return replace(
            likeness,
            name=self.name,
            person=self.person,
            namespaces=None if spaces is None else frozenset(spaces),
            mode=self.terms.mode if self.terms.mode in MODES else "full",  # type: ignore[arg-type]
            audience=audience,
            challenged_in_results=self.destination in CHALLENGED_IN_RESULTS,
        )


class VouchedLogin(msgspec.Struct, frozen=True, kw_only=True):
    """The login at a provider that a family came of: whose it is there, and the sign-in that its tokens are kept
    under."""

    issuer: str
    subject: str
    session: str
    sign_in: str
    lasting: bool = True
    """Whether it outlasts its access token, as what has a refresh token does."""


@dataclass(frozen=True, slots=True)
class TokenFamily:
    id: str
    agent: str
    client: str
    resource: str
    vouched: VouchedLogin | None = None

    def lasts(self) -> bool:
        return self.vouched is None or self.vouched.lasting

    def row(self) -> tuple[str | None, ...]:
        vouched = msgspec.json.encode(self.vouched).decode() if self.vouched is not None else None
        return self.id, self.agent, self.client, self.resource, vouched


def read_family(row: Record) -> TokenFamily:
    vouched = msgspec.json.decode(row[4], type=VouchedLogin) if row[4] else None
    return TokenFamily(row[0], row[1], row[2], row[3], vouched)


async def nobody_looks(_family: TokenFamily, agent: "SignedInAgent") -> "SignedInAgent":
    """What a refresh asks beside the store, where there is no provider."""
    return agent


@dataclass(frozen=True, slots=True)
class TokenPair:
    """Shown once, to the client; only hashes are kept."""

    access: str
    refresh: str
    scope: str
    seconds: float = ACCESS_SECONDS

    def __repr__(self) -> str:
        return "TokenPair(…)"


class AgentBody(msgspec.Struct, frozen=True):
    terms: AgreedTerms
    destination: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSignIn:
    """A sign-in whose code came back with its proof."""

    terms: AgreedTerms
    client: str
    resource: str
    destination: str
    vouched: VouchedLogin | None = None


LookAt = Callable[[TokenFamily, SignedInAgent], Awaitable[SignedInAgent]]


class SignedIn:
    """The live agents, families and access tokens."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        audience: Callable[[str], str | None],
        likeness: Callable[[], Caller],
        look_at: LookAt = nobody_looks,
    ) -> None:
        """`audience` is the path of a resource, None where it is none of ours any more; `likeness` is what each agent
        is but for what was agreed on. `look_at` is asked before a family that came of a login is refreshed: what its
        agent is now; it raises where nothing of it counts any more."""
        self._store, self._clock, self._audience, self._likeness = store, clock, audience, likeness
        self._look_at = look_at
        self._changed: Callable[[], None] = lambda: None
        self._agents: dict[str, SignedInAgent] = {}
        self._families: dict[str, TokenFamily] = {}
        self._access: dict[bytes, tuple[str, float]] = {}
        self._next_end = float("inf")
        self._changes = 0

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Hear that who may come in is not who it was."""
        self._changed = changed

    async def load(self) -> None:
        """Read what is live. Where it is not what was known, whoever is in hears of it."""
        self._take_live(*await read_steady(lambda: self._changes, self._read_live))

    async def _read_live(self) -> tuple[list[Record], list[Record], list[Record]]:
        now = self._clock.now()
        agents = await self._store.read(
            f"SELECT {AGENT_COLUMNS} FROM signed_in_agents WHERE revoked_at IS NULL AND expires_at > ?",
            (now,),
        )
        families = await self._store.read(
            f"SELECT {FAMILY_COLUMNS} FROM token_families WHERE revoked_at IS NULL"
        )
        tokens = await self._store.read(
            "SELECT digest, family, expires_at FROM family_tokens WHERE kind = 'access' AND expires_at > ?",
            (now,),
        )
        return agents, families, tokens

    def _take_live(self, agents: list[Record], families: list[Record], tokens: list[Record]) -> None:
        before = (self._agents, self._families, self._access)
        self._agents = {row[0]: read_agent(row) for row in agents}
        held = {row[1] for row in tokens}
        found = (read_family(row) for row in families if row[1] in self._agents)
        self._families = {one.id: one for one in found if one.lasts() or one.id in held}
        self._access = {bytes.fromhex(row[0]): (row[1], row[2]) for row in tokens if row[1] in self._families}
        self._note_end()
        if before != (self._agents, self._families, self._access):
            self._changed()

    def _note_end(self) -> None:
        self._changes += 1
        ends = [end for _, end in self._access.values()]
        self._next_end = min(
            [*ends, *(agent.expires_at for agent in self._agents.values())], default=float("inf")
        )

    def credentials(self) -> list[Credential]:
        """Everybody who signed in: each family, so that its sessions outlast its tokens, and each live access token."""
        found, likeness = [], self._likeness()
        for family in self._families.values():
            agent, audience = self._agents[family.agent], self._audience(family.resource)
            if audience is not None:
                proof = family_proof(family.id)
                found.append(Credential(proof, agent.caller(likeness, audience), proof))
        standing = {one.proof: one for one in found}
        for token, (family_id, _) in self._access.items():
            one = standing.get(family_proof(family_id))
            if one is not None:
                found.append(Credential(token, one.caller, one.proof))
        return found

    def agents(self) -> list[SignedInAgent]:
        return sorted(self._agents.values(), key=lambda agent: agent.name)

    def families(self) -> list[TokenFamily]:
        return list(self._families.values())

    def named(self, name: str) -> SignedInAgent | None:
        return self._agents.get(name)

    async def open_family(self, new: NewSignIn, also: Callable[[str], list[Statement]]) -> TokenPair:
        """The first tokens of a sign-in, durable with what `also` makes of the family's id; raises `Conflict` where its
        code was used before."""
        now, terms = self._clock.now(), new.terms
        family = TokenFamily(new_id(), terms.agent, new.client, new.resource, new.vouched)
        agent = SignedInAgent(
            name=terms.agent,
            client=new.client,
            person=terms.person,
            created_at=now,
            expires_at=now + terms.days * DAY,
            seen_at=now,
            terms=terms,
            destination=new.destination,
        )
        row = (agent.name, agent.client, agent.person, now, agent.expires_at, now, agent.body())
        lasting = new.vouched is None or new.vouched.lasting
        pair, tokens = self._new_pair(family.id, agent, lasting=lasting)
        await self._store.write(
            *also(family.id),
            Statement(UPSERT, (*row, new.vouched is None), expect=1),
            Statement(FAMILY, (*family.row(), now)),
            *tokens,
        )
        known = self._agents.get(agent.name)
        self._agents[agent.name] = replace(agent, created_at=known.created_at) if known else agent
        self._families[family.id] = family
        self._remember(pair, family.id)
        return pair

    def _new_pair(
        self, family: str, agent: SignedInAgent, *, lasting: bool = True
    ) -> tuple[TokenPair, list[Statement]]:
        now = self._clock.now()
        pair = TokenPair(
            f"aga_{secrets.token_urlsafe(32)}",
            f"agr_{secrets.token_urlsafe(32)}" if lasting else "",
            scope_of(agent.terms.namespaces),
            min(ACCESS_SECONDS, max(1.0, agent.expires_at - now)),
        )
        given = [Statement(TOKEN, (digest(pair.access).hex(), family, "access", now + pair.seconds))]
        if lasting:
            given.append(Statement(TOKEN, (digest(pair.refresh).hex(), family, "refresh", agent.expires_at)))
        return pair, given

    def _remember(self, pair: TokenPair, family: str) -> None:
        self._access[digest(pair.access)] = (family, self._clock.now() + pair.seconds)
        self._note_end()
        self._changed()

    async def refresh(self, token: str, client: str, proving: tuple[Statement, ...] = ()) -> TokenPair:
        """The next pair. A token that was used before gives another for a short while, and after it ends everything.
        `proving` uses the client's proof up with it."""
        family, agent, used_at = await self._find(token, client)
        now = self._clock.now()
        if used_at is not None and now - used_at > GRACE_SECONDS:
            await self.revoke_family(family.id)
            raise dead_grant()
        await self._check_pace(family.id)
        if family.vouched is not None:
            agent = await self._look_at(family, agent)
        pair, tokens = self._new_pair(family.id, agent)
        seen = Statement(
            "UPDATE signed_in_agents SET seen_at = ?, body = ? WHERE name = ?",
            (now, agent.body(), agent.name),
        )
        try:
            await self._store.write(
                Statement(ALIVE, (family.id,), expect=1),
                Statement(USE, (now, digest(token).hex())),
                *tokens,
                *proving,
                seen,
            )
        except Conflict:
            raise dead_grant() from None
        self._agents[agent.name] = replace(agent, seen_at=now)
        self._families[family.id] = family
        self._remember(pair, family.id)
        return pair

    async def _check_pace(self, family: str) -> None:
        """Refuse a client that asks for tokens without end: each is kept, here and in memory, for its hour."""
        [[live]] = await self._store.read(LIVE, (family, self._clock.now()))
        if live >= MOST_LIVE:
            raise too_many("This sign-in has too many tokens that have not ended.", 60)

    async def _find(self, token: str, client: str) -> tuple[TokenFamily, SignedInAgent, float | None]:
        """The refresh token's family and agent as the store has them now."""
        now = self._clock.now()
        rows = await self._store.read(
            "SELECT f.id, f.agent, f.client, f.resource, f.vouched, t.used_at FROM family_tokens t "
            "JOIN token_families f ON f.id = t.family "
            "WHERE t.digest = ? AND t.kind = 'refresh' AND t.expires_at > ? AND f.revoked_at IS NULL",
            (digest(token).hex(), now),
        )
        if not rows or rows[0][2] != client:
            raise dead_grant()
        family, used_at = read_family(rows[0]), rows[0][5]
        found = await self._store.read(
            f"SELECT {AGENT_COLUMNS} FROM signed_in_agents WHERE name = ? AND revoked_at IS NULL AND expires_at > ?",
            (family.agent, now),
        )
        if not found or self._audience(family.resource) is None:
            raise dead_grant()
        return family, read_agent(found[0]), used_at

    async def revoke_token(self, token: str, client: str | None) -> None:
        """What a client gives back (RFC 7009): its whole family ends. One that nobody has changes nothing."""
        rows = await self._store.read(
            "SELECT f.id, f.client FROM family_tokens t JOIN token_families f ON f.id = t.family WHERE t.digest = ?",
            (digest(token).hex(),),
        )
        if rows and client in (None, rows[0][1]):
            await self.revoke_family(rows[0][0])

    async def revoke_family(self, family: str) -> None:
        """Every token of one sign-in ends, and what was opened with them."""
        await self._store.write(
            Statement(
                "UPDATE token_families SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
                (self._clock.now(), family),
            )
        )
        self._drop({family})

    async def revoke_agent(self, name: str, *also: Statement) -> bool:
        """The agent is out at once; false where nobody of that name signed in."""
        if name not in self._agents:
            return False
        now = self._clock.now()
        await self._store.write(
            Statement("UPDATE signed_in_agents SET revoked_at = ? WHERE name = ?", (now, name)),
            Statement(
                "UPDATE token_families SET revoked_at = ? WHERE agent = ? AND revoked_at IS NULL", (now, name)
            ),
            *also,
        )
        self._agents.pop(name, None)
        self._drop({one.id for one in self._families.values() if one.agent == name})
        return True

    def _drop(self, families: set[str]) -> None:
        self._families = {key: one for key, one in self._families.items() if key not in families}
        self._access = {key: one for key, one in self._access.items() if one[0] not in families}
        self._note_end()
        self._changed()

    async def forget_ended(self) -> None:
        """Access tokens end on time, and so do agents; most of the time there is nothing to do."""
        now = self._clock.now()
        if now < self._next_end:
            return
        self._access = {key: one for key, one in self._access.items() if one[1] > now}
        self._agents = {name: agent for name, agent in self._agents.items() if agent.expires_at > now}
        self._families = {key: one for key, one in self._families.items() if one.agent in self._agents}
        live = {family for family, _ in self._access.values()}
        self._drop({key for key, one in self._families.items() if not one.lasts() and key not in live})

    async def purge(self) -> None:
        """Take out of the store what cannot count any more."""
        before = self._clock.now() - DAY
        await self._store.write(
            Statement("DELETE FROM family_tokens WHERE expires_at < ?", (before,)),
            Statement(
                "DELETE FROM family_tokens WHERE family IN (SELECT id FROM token_families WHERE revoked_at < ?)",
                (before,),
            ),
            Statement("DELETE FROM token_families WHERE revoked_at < ?", (before,)),
            Statement(
                "DELETE FROM token_families WHERE created_at < ? AND id NOT IN (SELECT family FROM family_tokens)",
                (before,),
            ),
        )


def read_agent(row: Record) -> SignedInAgent:
    body = msgspec.json.decode(row[6], type=AgentBody)
    return SignedInAgent(
        name=row[0],
        client=row[1],
        person=row[2],
        created_at=row[3],
        expires_at=row[4],
        seen_at=row[5],
        terms=body.terms,
        destination=body.destination,
    )

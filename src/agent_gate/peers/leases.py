"""Leases of paired components. They are in the store: each gateway on it knows them, and a restart ends none.

Memory holds a copy of those that were used here, for streams that ask with each event; notices keep it as the store has it.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import msgspec

from agent_gate.core.call import new_id
from agent_gate.core.ports import Clock
from agent_gate.errors import DependencyUnavailable, Forbidden, InvalidArgs, RateLimited
from agent_gate.peers.authorization import (
    ANYTHING,
    NOTHING_SAID,
    PeerLease,
    PeerPolicy,
    Scope,
    check_action,
    why_not,
)
from agent_gate.store.statement import Conflict, Statement, Store
from agent_gate.store.turns import taking_turn

USUAL_SECONDS, MOST_SECONDS = 900.0, 3600.0
MOST_PER_PEER = 32
GONE = "There is no such lease of this component, or it has ended. Ask for another one"
GIVE = (
    "INSERT INTO peer_leases (id, owner, expires_at, body) SELECT ?, ?, ?, ? "
    "WHERE (SELECT count(*) FROM peer_leases WHERE owner = ? AND expires_at > ?) < ?"
)
BIND = "UPDATE peer_leases SET gateway = ? WHERE id = ? AND gateway = ''"
END = "DELETE FROM peer_leases WHERE id = ?"
END_BOUND = "DELETE FROM peer_leases WHERE gateway = ?"
END_EVERY_LEASE = Statement("DELETE FROM peer_leases")
END_ALL = "DELETE FROM peer_leases WHERE owner = ?"
PURGE = "DELETE FROM peer_leases WHERE expires_at <= ?"
SELECT_LEASES = "SELECT id, owner, expires_at, gateway, body FROM peer_leases WHERE id IN ({})"


class LeaseTerms(msgspec.Struct, frozen=True):
    """What a lease allows, as its row has it."""

    capabilities: tuple[str, ...]
    scope: Scope
    disconnect_bound: bool


def lease_of(ident: str, owner: str, expires_at: float, gateway: str, body: str) -> PeerLease:
    terms = msgspec.json.decode(body, type=LeaseTerms)
    return PeerLease(
        lease_id=ident,
        owner=owner,
        capabilities=terms.capabilities,
        expires_at=expires_at,
        scope=terms.scope,
        disconnect_bound=terms.disconnect_bound,
        gateway=gateway,
    )


class PeerLeases:
    """Gives leases out and takes them back. Expiry is looked at whenever one is used, and whether the gateway lives that
    has the stream of a bound one."""

    def __init__(self, store: Store, clock: Clock, is_alive: Callable[[str], bool]) -> None:
        self._store, self._clock, self._is_alive = store, clock, is_alive
        self._used: dict[str, PeerLease] = {}
        self._ended: set[str] = set()
        """Those that ended here, which the store may not know yet."""

    async def begin(self) -> None:
        """What was bound to a stream of this gateway ended with it."""
        await self._store.write(Statement(END_BOUND, (self._store.chain,)))

    async def issue(
        self,
        owner: str,
        component_type: str,
        capabilities: tuple[str, ...],
        *,
        policy: PeerPolicy = NOTHING_SAID,
        scope: Scope = ANYTHING,
        seconds: float = USUAL_SECONDS,
        disconnect_bound: bool = False,
    ) -> PeerLease:
        """A lease of what the component may do anyway. Wider ones are refused, since they would promise too much."""
        if not capabilities or not 0 < seconds <= MOST_SECONDS:
            raise InvalidArgs(
                f"A lease needs capabilities, and lasts more than 0 and at most {MOST_SECONDS:g} seconds"
            )
        for action in map(check_action, capabilities):
            if why := why_not(action, component_type, policy):
                raise Forbidden(f"A lease can only reduce what a component may do: {why}")
        lease = PeerLease(
            lease_id=new_id(),
            owner=owner,
            capabilities=capabilities,
            expires_at=self._clock.now() + seconds,
            scope=scope,
            disconnect_bound=disconnect_bound,
        )
        try:
            await self._store.write(taking_turn(f"leases of {owner}"), self._giving(lease))
        except Conflict:
            raise RateLimited(f"{owner} holds {MOST_PER_PEER} leases already. End one first") from None
        self._used[lease.lease_id] = lease
        return lease

    def _giving(self, lease: PeerLease) -> Statement:
        terms = LeaseTerms(lease.capabilities, lease.scope, lease.disconnect_bound)
        row = (lease.lease_id, lease.owner, lease.expires_at, msgspec.json.encode(terms).decode())
        return Statement(GIVE, (*row, lease.owner, self._clock.now(), MOST_PER_PEER), expect=1)

    async def use(self, owner: str, lease_id: str) -> PeerLease:
        """The lease while it counts; anybody else's, and one that ended, is none."""
        if lease_id not in self._used and lease_id not in self._ended:
            self._forget_over()
            self._used.update(await self._read([lease_id]))
        lease = self._used.get(lease_id)
        if lease is None or lease.owner != owner or not self.holds(lease):
            raise Forbidden(GONE)
        return lease

    def holds(self, lease: PeerLease) -> bool:
        """Whether a lease that is in use still counts."""
        known = self._used.get(lease.lease_id)
        if known is None or known.expires_at <= self._clock.now():
            return False
        return not known.gateway or self._is_alive(known.gateway)

    async def bind(self, lease: PeerLease) -> None:
        """A stream begins here that uses it; the first one binds it to this gateway, where it is bound to one."""
        if lease.disconnect_bound:
            await self._store.write(Statement(BIND, (self._store.chain, lease.lease_id)))

    async def revoke(self, owner: str, lease_id: str) -> None:
        await self.use(owner, lease_id)
        await self._store.write(Statement(END, (lease_id,)))
        self._used.pop(lease_id, None)

    def disconnected(self, lease: PeerLease) -> None:
        """Whoever used a lease is gone; one that is bound to the connection ends with it."""
        if lease.disconnect_bound:
            self._used.pop(lease.lease_id, None)
            self._ended.add(lease.lease_id)
            with suppress(DependencyUnavailable):  # it stops, and its next start ends what was bound to it
                self._store.post(Statement(END, (lease.lease_id,)))

    async def hear(self, idents: Collection[str] | None) -> None:
        """These leases, or any, were bound or ended on another gateway."""
        known = [one for one in self._used if idents is None or one in idents]
        found = await self._read(known) if known else {}
        for ident in known:
            self._used.pop(ident, None)
        self._used.update(found)

    async def _read(self, idents: Sequence[str]) -> dict[str, PeerLease]:
        rows = await self._store.read(SELECT_LEASES.format(", ".join("?" * len(idents))), tuple(idents))
        return {row[0]: lease_of(*row) for row in rows if row[0] not in self._ended}

    def _forget_over(self) -> None:
        now = self._clock.now()
        self._used = {name: one for name, one in self._used.items() if one.expires_at > now}

    async def purge(self) -> None:
        """Forget what ended by itself."""
        self._forget_over()
        self._ended.clear()
        await self._store.write(Statement(PURGE, (self._clock.now(),)))


def ending_all(owner: str) -> Statement:
    """Goes with the revocation of a component."""
    return Statement(END_ALL, (owner,))

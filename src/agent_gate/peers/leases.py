"""Leases in use. They live in memory: whoever comes after a restart asks for another one."""

from agent_gate.core.call import new_id
from agent_gate.core.ports import Clock
from agent_gate.errors import Forbidden, InvalidArgs, RateLimited
from agent_gate.peers.authorization import (
    ANYTHING,
    NOTHING_SAID,
    PeerLease,
    PeerPolicy,
    Scope,
    check_action,
    why_not,
)

USUAL_SECONDS, MOST_SECONDS = 900.0, 3600.0
MOST_PER_PEER = 32
GONE = "There is no such lease of this component, or it has ended. Ask for another one"


class PeerLeases:
    """Gives leases out and takes them back. Expiry is looked at whenever one is used."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._leases: dict[str, PeerLease] = {}

    def issue(
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
        if len(self.of(owner)) >= MOST_PER_PEER:
            raise RateLimited(f"{owner} holds {MOST_PER_PEER} leases already. End one first")
        lease = PeerLease(
            lease_id=new_id(),
            owner=owner,
            capabilities=capabilities,
            expires_at=self._clock.now() + seconds,
            scope=scope,
            disconnect_bound=disconnect_bound,
        )
        self._leases[lease.lease_id] = lease
        return lease

    def of(self, owner: str) -> list[PeerLease]:
        """What one component holds now."""
        now = self._clock.now()
        self._leases = {name: one for name, one in self._leases.items() if one.expires_at > now}
        return [one for one in self._leases.values() if one.owner == owner]

    def use(self, owner: str, lease_id: str) -> PeerLease:
        """The lease while it counts; anybody else's, and one that ended, is none."""
        lease = self._leases.get(lease_id)
        if lease is None or lease.owner != owner or lease.expires_at <= self._clock.now():
            raise Forbidden(GONE)
        return lease

    def holds(self, lease: PeerLease) -> bool:
        """Whether a lease that is in use still counts."""
        return self._leases.get(lease.lease_id) is lease and lease.expires_at > self._clock.now()

    def revoke(self, owner: str, lease_id: str) -> None:
        self.use(owner, lease_id)
        del self._leases[lease_id]

    def disconnected(self, lease: PeerLease) -> None:
        """Whoever used a lease is gone; one that is bound to the connection ends with it."""
        if lease.disconnect_bound:
            self._leases.pop(lease.lease_id, None)

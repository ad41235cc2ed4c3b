"""Who is paired, durably: peers, their certificates, and the check that every request of a peer passes.

Memory holds a copy of what is active; a change is durable before it counts.
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

import msgspec

from agent_gate.core.ports import Clock
from agent_gate.errors import InvalidArgs, PairingFailed, PairingRequired
from agent_gate.peers.authority import CertificateSubject, Leaf
from agent_gate.peers.encoding import to_base64
from agent_gate.peers.leases import ending_all
from agent_gate.peers.pairing import TOTAL_SECONDS, Candidate
from agent_gate.peers.roles import NOTHING_NOTED, PeerNotes
from agent_gate.store.statement import Conflict, Statement, Store

PeerStatus = Literal["active", "revoked"]
SEEN_SECONDS = 60.0
SET_BACK_SECONDS = 300.0
UNCONFIRMED_SECONDS = TOTAL_SECONDS
UNCONFIRMED = "SELECT serial FROM peer_certificates WHERE state = 'issued' AND issued_at < ?"
READ_PEERS = (
    "SELECT name, component_type, endpoint, identity_key, status, paired_at, revoked_at, reason, last_seen, body "
    "FROM peers ORDER BY name"
)
READ_CERTIFICATES = "SELECT serial, peer, fingerprint, state, not_after FROM peer_certificates WHERE state = 'active' ORDER BY issued_at"
PUT_PEER = (
    "INSERT INTO peers (name, component_type, endpoint, identity_key, status, paired_at, revoked_at, reason, "
    "last_seen, body) VALUES (?, ?, ?, ?, 'active', ?, NULL, NULL, NULL, ?) "
    "ON CONFLICT (name) DO UPDATE SET component_type = excluded.component_type, endpoint = excluded.endpoint, "
    "identity_key = excluded.identity_key, status = 'active', paired_at = excluded.paired_at, revoked_at = NULL, "
    "reason = NULL, body = excluded.body WHERE peers.status = 'revoked' OR peers.identity_key = excluded.identity_key"
)
ISSUE = (
    "INSERT INTO peer_certificates (serial, peer, fingerprint, public_key, state, issued_at, not_after, reason) "
    "VALUES (?, ?, ?, ?, 'issued', ?, ?, NULL)"
)
CONFIRM = "UPDATE peer_certificates SET state = 'active' WHERE serial = ? AND state = 'issued'"
SUPERSEDE = "UPDATE peer_certificates SET state = 'superseded', reason = ? WHERE peer = ? AND state = 'active' AND serial <> ?"
REVOKE_CERTIFICATES = "UPDATE peer_certificates SET state = 'revoked', reason = ? WHERE peer = ? AND state IN ('active', 'issued')"
REVOKE_ISSUED = (
    "UPDATE peer_certificates SET state = 'revoked', reason = ? WHERE serial = ? AND state = 'issued'"
)
REVOKE_OLD = (
    "UPDATE peer_certificates SET state = 'revoked', reason = ? WHERE state = 'issued' AND issued_at < ?"
)
REVOKE_PEER = (
    "UPDATE peers SET status = 'revoked', revoked_at = ?, reason = ? WHERE name = ? AND status = 'active'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One paired component, as it is on record."""

    name: str
    component_type: str
    endpoint: str
    identity_key: str
    status: PeerStatus
    paired_at: float
    notes: PeerNotes = NOTHING_NOTED
    revoked_at: float | None = None
    reason: str | None = None
    last_seen: float | None = None
    fingerprint: str = ""
    serial: str = ""
    not_after: float = 0.0

    @property
    def subject(self) -> CertificateSubject:
        return CertificateSubject(self.component_type, self.name, dials_gateway=self.notes.dials_gateway)

    @property
    def namespace(self) -> str:
        return self.notes.pool or self.name


def key_digest(leaf: Leaf) -> str:
    return sha256(leaf.key).hexdigest()


class Peers:
    """The paired components. It is the `PeerLedger` of a handshake, and answers who a certificate belongs to."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._peers: dict[str, Peer] = {}
        self._by_fingerprint: dict[str, str] = {}
        self._seen_at: dict[str, float] = {}

    async def load(self) -> None:
        current = {row[1]: row for row in await self._store.read(READ_CERTIFICATES)}
        self._peers = {
            row[0]: read_peer(row, current.get(row[0])) for row in await self._store.read(READ_PEERS)
        }
        self._by_fingerprint = {
            peer.fingerprint: name for name, peer in self._peers.items() if peer.status == "active"
        }

    def known(self) -> list[Peer]:
        return sorted(self._peers.values(), key=lambda peer: peer.name)

    def active(self, component_type: str | None = None) -> list[Peer]:
        return [
            peer
            for peer in self.known()
            if peer.status == "active" and component_type in (None, peer.component_type)
        ]

    def get(self, name: str) -> Peer:
        if name not in self._peers:
            known = ", ".join(sorted(self._peers)) or "none"
            raise InvalidArgs(f"No peer is called {name}. Known: {known}")
        return self._peers[name]

    def usable(self, name: str) -> Peer:
        """The peer of that name while it may be asked. Looked up for every request, so that a revocation counts at the
        next one, whatever connection there is."""
        peer = self._peers.get(name)
        if peer is None or peer.status != "active" or not peer.fingerprint:
            raise PairingRequired(f"{name} is not paired, or was revoked. Pair it again")
        if peer.not_after <= self._clock.now():
            raise PairingRequired(f"The certificate of {name} has expired. Pair it again")
        return peer

    def authorize(self, fingerprint: str, component_uri: str, domain: str) -> Peer:
        """The active peer whose current certificate this is. Asked for every request, so that a revocation counts at
        the next one, whatever connection it comes on."""
        peer = self._peers.get(self._by_fingerprint.get(fingerprint, ""))
        if peer is None or peer.status != "active":
            raise PairingRequired(
                "This certificate belongs to no paired component, or was revoked. Pair it again"
            )
        if component_uri != f"spiffe://{domain}/{peer.component_type}/{peer.name}":
            raise PairingRequired("The certificate names another component than the record. Pair it again")
        if peer.not_after <= self._clock.now():
            raise PairingRequired("The certificate has expired. Pair the component again")
        return peer

    # -- the ledger of a handshake

    async def note_issued(self, peer: Candidate, leaf: Leaf) -> None:
        await self._check_clock()
        found = await self._store.read(
            "SELECT peer FROM peer_certificates WHERE public_key = ? AND peer <> ?",
            (key_digest(leaf), peer.subject.component_id),
        )
        if found:
            raise PairingFailed(f"This key was certified for {found[0][0]} before; a component needs its own")
        known = self._peers.get(peer.subject.component_id)
        if (
            known is not None
            and known.status == "active"
            and known.identity_key != to_base64(peer.identity_key)
        ):
            raise PairingFailed(
                f"Another component is paired as {known.name}. Revoke it first: agent-gate peers revoke {known.name}"
            )
        await self._store.write(self._issuing(peer.subject.component_id, leaf))

    async def _check_clock(self) -> None:
        """A clock that was set back would make certificates that outlive those on record."""
        latest = (await self._store.read("SELECT MAX(issued_at) FROM peer_certificates"))[0][0]
        if latest is not None and self._clock.now() < latest - SET_BACK_SECONDS:
            raise PairingFailed(
                "This machine's clock is behind the last certificate it issued. Set it right, then pair again"
            )

    def _issuing(self, name: str, leaf: Leaf) -> Statement:
        values = (leaf.serial, name, leaf.fingerprint, key_digest(leaf), self._clock.now(), leaf.not_after)
        return Statement(ISSUE, values)

    async def activate(self, peer: Candidate, leaf: Leaf) -> None:
        """From now on this certificate is the peer, and no earlier one."""
        name = peer.subject.component_id
        notes = msgspec.json.encode(peer.notes).decode()
        values = (
            name,
            peer.subject.component_type,
            peer.endpoint,
            to_base64(peer.identity_key),
            self._clock.now(),
            notes,
        )
        try:
            await self._store.write(
                Statement(PUT_PEER, values, expect=1),
                Statement(CONFIRM, (leaf.serial,), expect=1),
                Statement(SUPERSEDE, ("paired again", name, leaf.serial)),
            )
        except Conflict:
            raise PairingFailed(
                f"{name} was paired with another key at the same time. Nothing was paired"
            ) from None
        await self.load()

    async def revoke_issued(self, leaf: Leaf) -> None:
        await self._store.write(Statement(REVOKE_ISSUED, ("it was not confirmed in time", leaf.serial)))

    async def revoke_unconfirmed(self) -> None:
        """Certificates of handshakes that a crash cut short: none lasts as long."""
        before = self._clock.now() - UNCONFIRMED_SECONDS
        if await self._store.read(UNCONFIRMED, (before,)):
            await self._store.write(Statement(REVOKE_OLD, ("it was never confirmed", before)))

    # -- what an operator does

    async def revoke(self, name: str, why: str = "revoked by the operator", *also: Statement) -> Peer:
        """Take a peer's access back; counts with the next request of whatever connection it has."""
        peer = self.get(name)
        if peer.status != "active":
            raise InvalidArgs(f"{name} was revoked before")
        await self._store.write(
            Statement(REVOKE_PEER, (self._clock.now(), why, name), expect=1),
            Statement(REVOKE_CERTIFICATES, (why, name)),
            ending_all(name),
            *also,
        )
        await self.load()
        return peer

    async def note(self, name: str, notes: PeerNotes) -> Peer:
        body = msgspec.json.encode(notes).decode()
        self.get(name)
        await self._store.write(Statement("UPDATE peers SET body = ? WHERE name = ?", (body, name), expect=1))
        await self.load()
        return self.get(name)

    async def renew(self, name: str, leaf: Leaf) -> None:
        """Issued over the old certificate's own connection: the new one counts at once, the old one no more."""
        await self._store.write(
            self._issuing(name, leaf),
            Statement(CONFIRM, (leaf.serial,), expect=1),
            Statement(SUPERSEDE, ("renewed", name, leaf.serial)),
        )
        await self.load()

    def note_seen_lately(self, name: str) -> None:
        """As `note_seen`, once a minute at most."""
        now = self._clock.monotonic()
        if now - self._seen_at.get(name, -SEEN_SECONDS) >= SEEN_SECONDS:
            self._seen_at[name] = now
            self.note_seen(name)

    def note_seen(self, name: str) -> None:
        """Remember, without waiting, that a peer was heard of."""
        now = self._clock.now()
        if (peer := self._peers.get(name)) is not None:
            self._peers[name] = replace(peer, last_seen=now)
        self._store.post(Statement("UPDATE peers SET last_seen = ? WHERE name = ?", (now, name)))


def read_peer(row: tuple[Any, ...], certificate: tuple[Any, ...] | None) -> Peer:
    name, kind, endpoint, key, status, paired_at, revoked_at, reason, last_seen, body = row
    serial, fingerprint, not_after = (
        (certificate[0], certificate[2], certificate[4]) if certificate else ("", "", 0.0)
    )
    return Peer(
        name=name,
        component_type=kind,
        endpoint=endpoint,
        identity_key=key,
        status=status,
        paired_at=paired_at,
        notes=msgspec.json.decode(body, type=PeerNotes),
        revoked_at=revoked_at,
        reason=reason,
        last_seen=last_seen,
        fingerprint=fingerprint,
        serial=serial,
        not_after=not_after,
    )

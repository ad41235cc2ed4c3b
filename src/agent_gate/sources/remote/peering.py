"""The gateway among its peers: it pairs, renews and revokes, and keeps each paired tool host as a source."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from agent_gate.audit.record import row
from agent_gate.core.call import State, new_id
from agent_gate.core.ports import Clock, Plan, Plans
from agent_gate.errors import (
    ConfigError,
    DependencyUnavailable,
    GatewayError,
    InvalidArgs,
    PairingFailed,
    RateLimited,
)
from agent_gate.peers.authority import BACKDATED, LEAF_LIFETIME, CertificateSubject, Leaf
from agent_gate.peers.dialing import Endpoint, dial
from agent_gate.peers.encoding import from_base64
from agent_gate.peers.identity import GatewayIdentity, ensure_identity
from agent_gate.peers.pairing import (
    HANDSHAKES_A_MINUTE,
    TOO_OFTEN,
    Candidate,
    Confirm,
    Pairing,
    PeerLedger,
    Told,
    Wish,
)
from agent_gate.peers.passport import Passport, renewal
from agent_gate.peers.records import Peer, Peers
from agent_gate.peers.signing import key_fingerprint
from agent_gate.sources.remote.source import RemoteSource
from agent_gate.sources.remote.ways import PairedWay
from agent_gate.sources.toolbox import Toolbox
from agent_gate.store.statement import Statement, Store
from agent_gate.vault.vault import Vault

log = logging.getLogger("agent_gate.peers")
TOOL_ID = "peers:pair"
MINUTE = 60.0


class ScratchLedger:
    """Keeps nothing: what is paired on trial is a peer to nobody."""

    async def note_issued(self, _peer: Candidate, _leaf: Leaf, /) -> None:
        return None

    async def activate(self, _peer: Candidate, _leaf: Leaf, /) -> None:
        return None

    async def revoke_issued(self, _leaf: Leaf, _why: str, /) -> None:
        return None


async def confirm_nothing(_fingerprint: str) -> bool:
    return False


class Peering:
    """What an operator does with peers. `toolbox` and `tenant` are what their sources are made with."""

    def __init__(
        self, store: Store, clock: Clock, plans: Plans, toolbox: Callable[[], Toolbox], *, tenant: str
    ) -> None:
        self.peers = Peers(store, clock)
        self._store, self._clock, self._plans = store, clock, plans
        self._toolbox, self._tenant = toolbox, tenant
        self._identity: GatewayIdentity | None = None
        self._passport: Passport | None = None
        self._fault = "The gateway has no identity yet"
        self._under_way: set[str] = set()
        self._begun: dict[str, deque[float]] = {}
        self._ways: dict[str, PairedWay] = {}

    async def open(self, folder: Path, vault: Vault, gateway_id: str) -> None:
        """Find or make who this gateway is. Where that fails nobody can be paired or called; all else goes on."""
        await self.peers.load()
        await self.peers.revoke_unconfirmed()
        try:
            self._identity = await ensure_identity(folder, vault, gateway_id, self._clock)
        except GatewayError as error:
            self._fault = f"No host can be paired or called: {error.message}"
            log.error(self._fault)
            return
        self._passport = Passport(self._identity, self._clock)

    async def start(self) -> None:
        """Keep every paired host as a source; one whose name is taken by now is only told."""
        if self._passport is None:
            return
        for peer in self.peers.active("tool_host"):
            try:
                await self._plans.add(self._plan(peer, self._passport))
            except ConfigError as error:
                log.error("A paired host cannot be used: %s", error.message, extra={"peer": peer.name})

    def _plan(self, peer: Peer, passport: Passport) -> Plan:
        way = self._ways[peer.name] = PairedWay(self.peers, peer.name, passport, self._clock)
        source = RemoteSource(
            peer.name, way, self._toolbox(), tenant=self._tenant, trusted=peer.notes.trusted
        )
        return Plan(source=source, settings=peer.name, pinned=True, counts_for_ready=False)

    @property
    def identity(self) -> GatewayIdentity:
        if self._identity is None:
            raise DependencyUnavailable(self._fault)
        return self._identity

    def known(self) -> list[Peer]:
        return self.peers.known()

    # -- pairing

    async def pair(
        self,
        wish: Wish,
        person: str,
        *,
        confirm: Confirm = confirm_nothing,
        told: Told = lambda _phase, _text: None,
        trial: bool = False,
    ) -> str:
        """Pair with the component at the wish's endpoint; the id of the attempt, which is on record as a call."""
        endpoint = Endpoint.parse(wish.endpoint)
        wish = Wish(wish.subject, endpoint.url, wish.pin, wish.notes)
        if endpoint.url in self._under_way:
            raise InvalidArgs(f"A handshake with {endpoint.url} is under way. Wait until it has ended")
        self._check_often(endpoint.url)
        self._under_way.add(endpoint.url)
        try:
            ledger: PeerLedger = ScratchLedger() if trial else self.peers
            return await self._on_record(wish, endpoint, person, confirm, told, ledger)
        finally:
            self._under_way.discard(endpoint.url)

    def _check_often(self, url: str) -> None:
        """Whoever guesses at a host, or holds one up, gets no further than this."""
        now = self._clock.monotonic()
        self._begun = {place: begun for place, begun in self._begun.items() if now - begun[-1] < MINUTE}
        begun = self._begun.setdefault(url, deque(maxlen=HANDSHAKES_A_MINUTE))
        if len(begun) == HANDSHAKES_A_MINUTE and now - begun[0] < MINUTE:
            raise RateLimited(f"{url}: {TOO_OFTEN}", retry_after=MINUTE - (now - begun[0]))
        begun.append(now)

    async def _on_record(
        self, wish: Wish, endpoint: Endpoint, person: str, confirm: Confirm, told: Told, ledger: PeerLedger
    ) -> str:
        call_id = new_id()
        await self._store.write(self._row(call_id, State.DISPATCHING, person, wish))
        try:
            await self._shake_hands(wish, endpoint, confirm, told, ledger)
        except GatewayError as error:
            said = {"code": error.code, "message": error.message[:1000]}
            await self._store.write(self._row(call_id, State.FAILED, person, wish, error=said))
            raise
        except asyncio.CancelledError:
            said = {"code": PairingFailed.code, "message": "Whoever asked for it is gone"}
            self._store.post(self._row(call_id, State.FAILED, person, wish, error=said))
            raise
        await self._store.write(self._row(call_id, State.COMPLETED, person, wish))
        if ledger is self.peers:
            await self._serve(wish.subject)
        return call_id

    def _row(self, call_id: str, state: State, person: str, wish: Wish, **more: object) -> Statement:
        name, kind = wish.subject.component_id, wish.subject.component_type
        body = {
            "arguments": {"component_type": kind, "component_id": name, "endpoint": wish.endpoint},
            "decision": "allow",
            "reason": "started on the admin socket",
            "signature": f"{TOOL_ID} {kind} {name} {wish.endpoint}",
            "source": "peers",
            "surface": "terminal",
            "wire": TOOL_ID,
            **more,
        }
        return row(call_id, state, self._clock.now(), person, TOOL_ID, body)

    async def _shake_hands(
        self, wish: Wish, endpoint: Endpoint, confirm: Confirm, told: Told, ledger: PeerLedger
    ) -> None:
        identity = self.identity
        assert self._passport is not None
        async with dial(endpoint, self._passport.pair) as line:
            pairing = Pairing(
                line,
                identity.key,
                identity.gateway_id,
                identity.authority,
                ledger,
                self._clock,
                confirm,
                told,
            )
            await pairing.run(wish)

    async def _serve(self, subject: CertificateSubject) -> None:
        if subject.component_type == "tool_host" and self._passport is not None:
            await self._plans.add(self._plan(self.peers.get(subject.component_id), self._passport))

    # -- what comes after

    async def revoke(self, name: str, person: str) -> Peer:
        """From the moment it is durable nothing is sent to it: its tools are gone from every list, its connections
        closed."""
        peer = await self.peers.revoke(name, f"revoked by {person}")
        if (way := self._ways.pop(name, None)) is not None:
            await self._plans.remove(name)
            await way.aclose()
        log.warning("A peer was revoked", extra={"peer": name, "by": person})
        return peer

    async def rotate(self, name: str, person: str) -> Peer:
        """A new certificate for a peer, by another handshake over the connection that the old one secures."""
        peer = self.peers.usable(name)
        pin = key_fingerprint(from_base64(peer.identity_key))
        wish = Wish(peer.subject, peer.endpoint, pin, peer.notes)
        await self.pair(wish, person)
        return self.peers.get(name)

    async def trust(self, name: str, person: str, *, trusted: bool = True) -> Peer:
        """Believe, or no longer believe, what a host says of its tools."""
        notes = msgspec.structs.replace(self.peers.get(name).notes, trusted=trusted)
        peer = await self.peers.note(name, notes)
        log.info(
            "A peer is trusted" if trusted else "A peer is trusted no more",
            extra={"peer": name, "by": person},
        )
        if peer.status == "active":
            await self._serve(peer.subject)
        return peer

    async def renew_due(self) -> None:
        """Replace the certificates of which two thirds are over; a host that is away is tried again next time."""
        for peer in self.peers.active():
            due = renewal(peer.not_after - (LEAF_LIFETIME + BACKDATED).total_seconds(), peer.not_after)
            if self._clock.now() < due:
                continue
            try:
                await self.rotate(peer.name, "agent-gate")
            except GatewayError as error:
                log.warning(
                    "A certificate could not be renewed: %s", error.message, extra={"peer": peer.name}
                )

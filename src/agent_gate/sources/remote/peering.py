"""The gateway among its peers: it pairs, renews and revokes, and keeps each paired tool host as a source."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import msgspec

from agent_gate.audit.record import row
from agent_gate.core.call import State, new_id
from agent_gate.core.ports import Clock, Plan, Plans, Source
from agent_gate.core.tasks import KeptTasks
from agent_gate.errors import (
    ConfigError,
    DependencyUnavailable,
    GatewayError,
    InvalidArgs,
    PairingFailed,
    RateLimited,
)
from agent_gate.net.websocket import WebSocketHandler
from agent_gate.peers.authority import BACKDATED, LEAF_LIFETIME, CertificateSubject, Leaf
from agent_gate.peers.dialing import Endpoint, dial
from agent_gate.peers.encoding import from_base64
from agent_gate.peers.identity import GatewayIdentity, ensure_identity
from agent_gate.peers.lines import SocketLine
from agent_gate.peers.pairing import (
    HANDSHAKES_A_MINUTE,
    TOO_OFTEN,
    Candidate,
    Confirm,
    Line,
    Pairing,
    PeerLedger,
    TellPhase,
    Wish,
)
from agent_gate.peers.passport import Passport, renewal
from agent_gate.peers.records import Peer, Peers
from agent_gate.peers.signing import key_fingerprint
from agent_gate.sources.remote.dialin import DialledInWay, HostSocket
from agent_gate.sources.remote.pooled import PooledSource
from agent_gate.sources.remote.source import RemoteSource
from agent_gate.sources.remote.ways import PairedWay, Way
from agent_gate.sources.toolbox import Toolbox
from agent_gate.store.statement import Statement, Store
from agent_gate.vault.vault import Vault

log = logging.getLogger("agent_gate.peers")
TOOL_ID = "peers:pair"
MINUTE = 60.0
WINDOW_SECONDS = 600.0
DIALLED_AT_A_TIME = 50


class PeersListener(Protocol):
    """Where components come in that dial the gateway."""

    @property
    def address(self) -> str: ...
    async def take_strangers(self, yes: bool) -> None:
        """Whether a connection without a certificate is taken."""
        ...

    def drop_unknown(self) -> None:
        """Close the connections of those who are no peers any more."""
        ...


class Window:
    """The time in which one component without a certificate may dial in and be paired."""

    def __init__(self, name: str) -> None:
        self.name, self.taken = name, False
        self._came: asyncio.Future[SocketLine] = asyncio.get_running_loop().create_future()

    def line(self, shown: str) -> SocketLine:
        """Whoever comes first. What it says it saw over TLS must be what this gateway shows."""
        self.taken = True
        return SocketLine(self._open, shown)

    def _open(self, line: SocketLine) -> None:
        if not self._came.done():
            self._came.set_result(line)

    async def wait_for_line(self) -> SocketLine:
        try:
            async with asyncio.timeout(WINDOW_SECONDS):
                return await self._came
        except TimeoutError:
            raise PairingFailed(
                f"{self.name} did not dial in within ten minutes. Nothing was paired",
                details={"phase": 0, "code": "TIMEOUT"},
            ) from None


class ScratchLedger:
    """Keeps nothing: what is paired on trial is a peer to nobody."""

    async def note_issued(self, _peer: Candidate, _leaf: Leaf, /) -> None:
        return None

    async def activate(self, _peer: Candidate, _leaf: Leaf, /) -> None:
        return None

    async def revoke_issued(self, _leaf: Leaf, /) -> None:
        return None


async def confirm_nothing(_fingerprint: str) -> bool:
    return False


def standing(peer: Peer) -> tuple[object, ...]:
    """What makes a peer another source than before; its certificate and when it was seen do not."""
    return peer.component_type, peer.endpoint, peer.identity_key, peer.notes


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
        self._turns = asyncio.Semaphore(DIALLED_AT_A_TIME)
        self._begun: dict[str, deque[float]] = {}
        self._sockets: dict[str, HostSocket] = {}
        self._tasks = KeptTasks(log, "A component that dialled in could not be served")
        self._window: Window | None = None
        self._listener: PeersListener | None = None

    def take_listener(self, listener: PeersListener | None) -> None:
        """Where components dial in, while something listens for them."""
        self._listener = listener

    async def open(self, folder: Path, vault: Vault, gateway_id: str) -> None:
        """Find or make who this gateway is. Where that fails nobody can be paired or called; all else goes on."""
        await self.peers.load()
        await self.peers.revoke_unconfirmed()
        try:
            self._identity = await ensure_identity(folder, vault, gateway_id, self._clock, self._store)
        except GatewayError as error:
            self._fault = f"No host can be paired or called: {error.message}"
            log.error(self._fault)
            return
        self._passport = Passport(self._identity, self._clock)

    async def start(self) -> None:
        """Keep every paired host as a source; one whose name is taken by now is only told."""
        if self._passport is None:
            return
        found: dict[str, list[Peer]] = {}
        for peer in self.peers.active("tool_host"):
            found.setdefault(peer.namespace, []).append(peer)
        plans = [self._plan(namespace, hosts) for namespace, hosts in found.items()]
        try:
            await self._plans.add(*plans)
        except ConfigError:
            await self._add_what_fits(plans)

    async def _add_what_fits(self, plans: list[Plan]) -> None:
        for plan in plans:
            try:
                await self._plans.add(plan)
            except ConfigError as error:
                log.error("A paired host cannot be used: %s", error.message, extra={"peer": plan.source.key})

    async def _serve(self, namespace: str) -> None:
        """Bring the source of a namespace up to what is paired now; with nobody left it goes away."""
        hosts = [peer for peer in self.peers.active("tool_host") if peer.namespace == namespace]
        if not hosts:
            await self._plans.remove(namespace)
        else:
            await self._plans.add(self._plan(namespace, hosts))

    def _plan(self, namespace: str, hosts: list[Peer]) -> Plan:
        source: Source = self._source(hosts[0])
        if any(host.notes.pool for host in hosts):
            members = [self._source(host) for host in hosts]
            source = PooledSource(namespace, members, self._toolbox())
        return Plan(source=source, settings=namespace, pinned=True, counts_for_ready=False)

    def _source(self, host: Peer) -> RemoteSource:
        way: Way
        if host.notes.dials_in:
            way = DialledInWay(self.peers, host.name, self._sockets.get)
        else:
            assert self._passport is not None
            way = PairedWay(self.peers, host.name, self._passport)
        return RemoteSource(
            host.name,
            way,
            self._toolbox(),
            tenant=self._tenant,
            trusted=host.notes.trusted,
            turns=self._turns,
        )

    @property
    def identity(self) -> GatewayIdentity:
        if self._identity is None:
            raise DependencyUnavailable(self._fault)
        return self._identity

    @property
    def domain(self) -> str:
        return self.identity.authority.domain

    @property
    def passport(self) -> Passport | None:
        """What this gateway shows of itself; None where it has no identity."""
        return self._passport

    def known(self) -> list[Peer]:
        return self.peers.known()

    # -- pairing

    async def pair(
        self,
        wish: Wish,
        person: str,
        *,
        confirm: Confirm = confirm_nothing,
        told: TellPhase = lambda _phase, _text: None,
        trial: bool = False,
    ) -> str:
        """Pair with the component at the wish's endpoint; the id of the attempt, which is on record as a call."""
        if not wish.notes.dials_in:
            wish = replace(wish, endpoint=Endpoint.parse(wish.endpoint).url)
        self._check_names(wish)
        place = wish.endpoint or wish.subject.component_id
        if place in self._under_way:
            raise InvalidArgs(f"A handshake with {place} is under way. Wait until it has ended")
        self._check_often(place)
        self._under_way.add(place)
        try:
            ledger: PeerLedger = ScratchLedger() if trial else self.peers
            return await self._put_on_record(wish, self._line(wish, told), person, confirm, told, ledger)
        finally:
            self._under_way.discard(place)

    def _check_names(self, wish: Wish) -> None:
        """A pool and a host alone cannot share a namespace: one of them would vanish behind the other."""
        namespace = wish.notes.pool or wish.subject.component_id
        for peer in self.peers.active("tool_host"):
            if (
                wish.subject.component_type == "tool_host"
                and peer.name != wish.subject.component_id
                and peer.namespace == namespace
                and not (peer.notes.pool and wish.notes.pool)
            ):
                raise InvalidArgs(
                    f"{peer.name} has the namespace {namespace} already. Choose another name, or pair both with --pool"
                )

    def _line(self, wish: Wish, told: TellPhase) -> "AbstractAsyncContextManager[Line]":
        assert self._passport is not None or self._identity is None
        if self._passport is None:
            raise DependencyUnavailable(self._fault)
        if wish.notes.dials_in:
            return self._awaited(wish, told)
        return dial(Endpoint.parse(wish.endpoint), self._passport.pair)

    def _check_often(self, url: str) -> None:
        """Whoever guesses at a host, or holds one up, gets no further than this."""
        now = self._clock.monotonic()
        self._begun = {place: begun for place, begun in self._begun.items() if now - begun[-1] < MINUTE}
        begun = self._begun.setdefault(url, deque(maxlen=HANDSHAKES_A_MINUTE))
        if len(begun) == HANDSHAKES_A_MINUTE and now - begun[0] < MINUTE:
            raise RateLimited(f"{url}: {TOO_OFTEN}", retry_after=MINUTE - (now - begun[0]))
        begun.append(now)

    async def _put_on_record(
        self,
        wish: Wish,
        line: "AbstractAsyncContextManager[Line]",
        person: str,
        confirm: Confirm,
        told: TellPhase,
        ledger: PeerLedger,
    ) -> str:
        call_id = new_id()
        await self._store.write(self._row(call_id, State.DISPATCHING, person, wish))
        try:
            await self._shake_hands(wish, line, confirm, told, ledger)
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
            await self._take_up(wish.subject)
        return call_id

    async def _take_up(self, subject: CertificateSubject) -> None:
        if subject.component_type == "tool_host":
            await self._serve(self.peers.get(subject.component_id).namespace)
        else:
            self._drop_strangers()

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
        self,
        wish: Wish,
        opening: "AbstractAsyncContextManager[Line]",
        confirm: Confirm,
        told: TellPhase,
        ledger: PeerLedger,
    ) -> None:
        identity = self.identity
        async with opening as line:
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

    # -- components that dial in

    @asynccontextmanager
    async def _awaited(self, wish: Wish, told: TellPhase) -> AsyncIterator[Line]:
        """The line of the one component that dials in while the window is open."""
        if self._listener is None:
            raise DependencyUnavailable(
                "Nothing listens for components that dial in. Write `peers: {host: …, port: …}` into the configuration"
            )
        if self._window is not None:
            raise InvalidArgs(f"{self._window.name} is waited for already. Wait until that has ended")
        self._window = window = Window(wish.subject.component_id)
        try:
            await self._listener.take_strangers(True)
            told(0, f"waiting for {window.name} to dial {self._listener.address} for ten minutes")
            line = await window.wait_for_line()
            await self._listener.take_strangers(False)
            yield line
            line.close()
        finally:
            self._window = None
            await self._listener.take_strangers(False)

    def expected(self) -> WebSocketHandler | None:
        """The line for somebody without a certificate; None unless an operator waits for exactly one."""
        if self._window is None or self._window.taken or self._passport is None:
            return None
        return self._window.line(self._passport.fingerprint)

    def renewal(self, peer: Peer) -> WebSocketHandler:
        """The line over which a component that dials gets its next certificate."""
        assert self._passport is not None

        def begin(line: SocketLine) -> None:
            self._tasks.start(self._renew(peer, line))

        return SocketLine(begin, self._passport.fingerprint)

    async def _renew(self, peer: Peer, line: SocketLine) -> None:
        pin = key_fingerprint(from_base64(peer.identity_key))
        wish = Wish(peer.subject, peer.endpoint, pin, peer.notes)
        place = f"{peer.name} (renewal)"
        try:
            self._check_often(place)
            await self._put_on_record(
                wish, nullcontext(line), "agent-gate", confirm_nothing, lambda _p, _t: None, self.peers
            )
        except GatewayError as error:
            log.warning("A certificate could not be renewed: %s", error.message, extra={"peer": peer.name})
        finally:
            line.close()

    def host(self, peer: Peer) -> WebSocketHandler | None:
        """The connection over which a host is called that dials in; None for anybody else."""
        if peer.component_type != "tool_host" or not peer.notes.dials_in:
            return None

        def came(socket: HostSocket) -> None:
            before, self._sockets[peer.name] = self._sockets.get(peer.name), socket
            if before is not None:
                before.close()
            self._tasks.start(self._serve(peer.namespace))

        def went(socket: HostSocket) -> None:
            if self._sockets.get(peer.name) is socket:
                del self._sockets[peer.name]

        return HostSocket(came, went)

    def note_refused_pairing(self, person: str, path: str) -> None:
        """A component asked to pair over the network; it is on record that it was refused."""
        said = {"code": "FORBIDDEN", "message": "Pairing starts on the admin socket and nowhere else"}
        body = {"error": said, "asked": path[:200], "surface": "peers", "source": "peers", "wire": TOOL_ID}
        self._store.post(row(new_id(), State.REFUSED, self._clock.now(), person, TOOL_ID, body))

    def _drop_strangers(self) -> None:
        if self._listener is not None:
            self._listener.drop_unknown()

    # -- what comes after

    async def revoke(self, name: str, person: str) -> Peer:
        """From the moment it is durable nothing is sent to it: its tools are gone from every list, its connections
        closed."""
        peer = await self.peers.revoke(name, f"revoked by {person}")
        if (socket := self._sockets.pop(name, None)) is not None:
            socket.close()
        if peer.component_type == "tool_host":
            await self._serve(peer.namespace)
        self._drop_strangers()
        log.warning("A peer was revoked", extra={"peer": name, "by": person})
        return peer

    async def refresh(self) -> None:
        """Take over what another gateway on the same store has paired, trusted or revoked."""
        before = {peer.name: standing(peer) for peer in self.peers.active()}
        await self.peers.load()
        now = {peer.name: standing(peer) for peer in self.peers.active()}
        changed = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
        for name in changed - now.keys():
            if (socket := self._sockets.pop(name, None)) is not None:
                socket.close()
        known = {peer.name: peer for peer in self.peers.known()}
        for namespace in {known[name].namespace for name in changed & known.keys()}:
            try:
                await self._serve(namespace)
            except ConfigError as error:
                log.error("A paired host cannot be used: %s", error.message, extra={"peer": namespace})
        if changed:
            self._drop_strangers()

    async def rotate(self, name: str, person: str) -> Peer:
        """A new certificate for a peer, by another handshake over the connection that the old one secures."""
        peer = self.peers.usable(name)
        if not peer.endpoint:
            raise InvalidArgs(f"{name} dials in, and renews its certificate by itself")
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
            await self._take_up(peer.subject)
        return peer

    async def renew_due(self) -> None:
        """Replace the certificates of which two thirds are over; a host that is away is tried again next time."""
        for peer in self.peers.active():
            due = renewal(peer.not_after - (LEAF_LIFETIME + BACKDATED).total_seconds(), peer.not_after)
            if self._clock.now() < due or not peer.endpoint or peer.component_type != "tool_host":
                continue
            try:
                await self.rotate(peer.name, "agent-gate")
            except GatewayError as error:
                log.warning(
                    "A certificate could not be renewed: %s", error.message, extra={"peer": peer.name}
                )

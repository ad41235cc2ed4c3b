"""The way in of paired components: the `peers:` listener, what each may do, and the events they hear."""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_gate.access.roles import EVERYTHING
from agent_gate.calls.events import EventFeed
from agent_gate.calls.sweeper import HOUR, Sweeper
from agent_gate.config.settings import Settings
from agent_gate.errors import GatewayError
from agent_gate.net.connection import Connection
from agent_gate.net.limits import Limits
from agent_gate.net.server import Server
from agent_gate.peers.authorization import NOTHING_SAID, PUBLISH, PeerPolicy, check_action
from agent_gate.peers.leases import PeerLeases
from agent_gate.sources.remote.localevents import LocalEvents
from agent_gate.sources.remote.settings import HOSTS, HostSettings
from agent_gate.surfaces.listeners import opened_at
from agent_gate.surfaces.peers import PeersSurface
from agent_gate.surfaces.peers.visitor import peer_of
from agent_gate.surfaces.requestlog import logged

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway

log = logging.getLogger("agent_gate.app")
MESSAGE_BYTES = 16 << 20
BOUNDS = Limits(connections=4096, message_bytes=MESSAGE_BYTES, buffer_bytes=MESSAGE_BYTES)


def peer_policies(settings: Settings) -> Mapping[str, PeerPolicy]:
    """What the configuration says of each peer; an action that is none is a `ConfigError`."""
    found = settings.peers.policy if settings.peers is not None else {}
    for host in HOSTS.of(settings).values():
        for event_type in host.publish:
            check_action(f"{PUBLISH}{event_type}")
    return {
        name: PeerPolicy(tuple(map(check_action, one.allow)), tuple(map(check_action, one.deny)))
        for name, one in found.items()
    }


class PeersWay:
    """Nothing listens unless the configuration says so."""

    def __init__(self, gateway: "Gateway") -> None:
        settings, self._peering = gateway.settings, gateway.accounts.peering
        self._place, self._listeners = settings.peers, gateway.listeners
        self._pool = gateway.pool
        self._hearing: list[asyncio.Task[None]] = []
        self.policies = peer_policies(settings)
        self.feed: EventFeed = EventFeed(
            gateway.kept.store,
            gateway.clock,
            tenant=settings.gateway.tenant,
            gateway_id=settings.gateway.id,
        )
        self.leases = PeerLeases(gateway.kept.store, gateway.clock, gateway.kept.gateways.is_alive)
        self._surface = PeersSurface(
            self._peering,
            self.feed,
            self.leases,
            gateway.clock,
            tenant=settings.gateway.tenant,
            policy=lambda name: self.policies.get(name, NOTHING_SAID),
            operator_api=lambda request, person, channel: gateway.ways_in.operators.surface.api.handle(
                request, person, channel, EVERYTHING
            ),
        )
        self._server = Server(logged(self._surface.handle), upgrade=self._surface.upgrade, limits=BOUNDS)
        self._shown, self._strangers, self._listens = "", False, False

    @property
    def address(self) -> str:
        host = self._place.host if self._place is not None else ""
        return opened_at(host, self._server.port, secure=True).replace("https:", "wss:")

    def hear_hosts(self, settings: Settings) -> None:
        """Ask the hosts on this machine for the events that they may publish."""
        for task in self._hearing:
            task.cancel()
        self._hearing = [
            asyncio.ensure_future(self._events_of(name, host, settings.gateway.tenant).run())
            for name, host in HOSTS.of(settings).items()
            if host.publish
        ]

    def _events_of(self, name: str, host: HostSettings, tenant: str) -> LocalEvents:
        return LocalEvents(name, self._pool, host.socket, host.publish, tenant, self.feed.publish)

    async def start(self, sweeper: Sweeper, settings: Settings) -> None:
        self.hear_hosts(settings)
        await self.leases.begin()
        sweeper.run_every(HOUR, self.leases.purge)
        passport = self._peering.passport
        if self._place is None:
            return
        if passport is None:
            log.error("Nothing listens for paired components, since this gateway has no identity")
            return
        self._shown = passport.fingerprint
        shown = passport.listening(strangers=False)
        await self._server.start(
            self._place.host, self._place.port, ssl=shown, chosen_by="`peers.port` in the configuration"
        )
        self._listens = True
        self._peering.take_listener(self)
        self._listeners.announce_peers(self.address)
        sweeper.run_every(HOUR, self._renew)

    async def stop(self) -> None:
        for task in self._hearing:
            task.cancel()
        await asyncio.gather(*self._hearing, return_exceptions=True)
        if self._listens:
            self._listens = False
            self._peering.take_listener(None)
            await self._server.drain(0.5)

    async def take_strangers(self, yes: bool) -> None:
        if self._listens and yes != self._strangers:
            self._strangers = yes
            await self._show()

    async def _renew(self) -> None:
        """Show the certificate that this gateway has made itself meanwhile."""
        passport = self._peering.passport
        if passport is not None and passport.fingerprint != self._shown:
            await self._show()

    async def _show(self) -> None:
        passport = self._peering.passport
        assert passport is not None
        self._shown = passport.fingerprint
        await self._server.show(passport.listening(strangers=self._strangers))

    def drop_unknown(self) -> None:
        """Close the connections whose certificate counts no more; streams end with them."""
        for connection in tuple(self._server.connections):
            if not isinstance(connection, Connection) or connection.transport is None:
                continue
            try:
                peer_of(self._peering.peers, connection.certificate, self._peering.domain)
            except GatewayError:
                connection.transport.abort()

    def take_over(self, settings: Settings, policies: Mapping[str, PeerPolicy]) -> None:
        self.policies = policies
        self.hear_hosts(settings)

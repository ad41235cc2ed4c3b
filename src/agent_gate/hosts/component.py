"""A component of any kind and its side of pairing: who it is, its folder, and the handshakes it takes part in."""

import logging
import ssl
from collections.abc import Awaitable, Callable

from websockets.asyncio.client import ClientConnection, connect

from agent_gate.core.ports import Clock
from agent_gate.errors import PairingFailed
from agent_gate.hosts.kept import HostFolder, HostSetup, SeenInitiations
from agent_gate.net.tls.files import fingerprint
from agent_gate.net.tls.mutual import KeyPair, shown_certificate, unverified_client
from agent_gate.peers.belonging import Belonging
from agent_gate.peers.dialing import DIAL_SECONDS, PAIR, DialledLine
from agent_gate.peers.joining import Component, Joining, Membership
from agent_gate.peers.messages import MOST_BYTES
from agent_gate.peers.pairing import Line

__all__ = ["HostSetup", "PairedComponent"]

log = logging.getLogger("agent_gate.hosts")
KeepMembership = Callable[[Membership], Awaitable[None]]


class PairedComponent:
    """What a component knows of itself and of its gateway. `installed` is told of each new membership."""

    def __init__(self, setup: HostSetup, clock: Clock, installed: KeepMembership) -> None:
        self.setup, self._clock, self._installed = setup, clock, installed
        self.folder = HostFolder(setup.folder)
        self._seen = SeenInitiations(self.folder.path)
        self.belonging: Belonging | None = None

    def load(self) -> None:
        if self.setup.pair_again:
            self.folder.forget()
        membership = self.folder.membership()
        self.belonging = Belonging(membership) if membership is not None else None

    def shown(self) -> KeyPair:
        """What it shows over TLS: what it was issued, or before that a certificate that proves nothing by itself."""
        return self.belonging.pair if self.belonging is not None else self.folder.own_certificate()

    async def join(self, line: Line, proof: str) -> None:
        """Take part in one handshake. `proof` is the fingerprint of the certificate that the line's server shows."""
        setup = self.setup
        component = Component(
            setup.component_type, setup.component_id, self.folder.identity, setup.gateway_key
        )
        membership = await Joining(line, component, proof, self._seen, self._clock, self._install).run()
        log.info("Paired with %s", membership.gateway_id, extra={"certificate": membership.fingerprint})

    async def join_listening(self, line: Line) -> None:
        """The gateway dialled: what this component shows is what nobody between could show."""
        await self.join(line, fingerprint(self.shown().certificate))

    async def join_dialling(self) -> None:
        """Dial the gateway, which speaks first: for the first time, or for the next certificate."""
        context = unverified_client() if self.belonging is None else self.belonging.context()
        socket = await self.dial(PAIR, context)
        try:
            line = DialledLine(socket)
            if line.certificate_fingerprint is None:
                raise PairingFailed("The gateway is dialled over wss:// only")
            await self.join(line, line.certificate_fingerprint)
        finally:
            await socket.close()

    async def dial(self, path: str, context: ssl.SSLContext, most: int = MOST_BYTES) -> ClientConnection:
        """A WebSocket to the gateway; once paired, to no one else."""
        socket = await connect(
            f"{self.setup.gateway_url.rstrip('/')}{path}",
            ssl=context,
            compression=None,
            max_size=most,
            open_timeout=DIAL_SECONDS,
            close_timeout=1.0,
            proxy=None,
        )
        if self.belonging is not None:
            try:
                self.belonging.check_gateway(shown_certificate(socket.transport))
            except ssl.SSLError:
                await socket.close()
                raise
        return socket

    @property
    def renewal_due(self) -> bool:
        return self.belonging is not None and self._clock.now() >= self.belonging.renew_at

    async def _install(self, membership: Membership) -> None:
        """Durable before it counts."""
        self.folder.keep(membership)
        self.belonging = Belonging(membership)
        await self._installed(membership)

"""The way to a host: which pool and target a request takes, and whether it may go at all, asked for each one."""

import logging
from pathlib import Path
from typing import Protocol

from agent_gate.core.ports import Clock
from agent_gate.core.tasks import KeptTasks
from agent_gate.net.pool import Pool, Target
from agent_gate.peers.dialing import Endpoint
from agent_gate.peers.passport import Passport
from agent_gate.peers.records import Peer, Peers

log = logging.getLogger("agent_gate.sources.remote")
SEEN_SECONDS = 60.0


class Way(Protocol):
    """How a host is reached."""

    def take(self) -> tuple[Pool, Target]:
        """Where the next request goes. Raises `PairingRequired` where nobody may be asked."""
        ...

    def seen(self) -> None:
        """The host answered."""
        ...

    async def aclose(self) -> None: ...


class LocalWay:
    """A Unix socket of this machine: its owner and mode are all the proof there is."""

    def __init__(self, pool: Pool, path: Path) -> None:
        self._pool, self._target = pool, Target.unix(path)

    def take(self) -> tuple[Pool, Target]:
        return self._pool, self._target

    def seen(self) -> None:
        return None

    async def aclose(self) -> None:
        return None


class PairedWay:
    """mTLS to a paired host. A connection belongs to one certificate of each side; another one is another pool."""

    def __init__(self, peers: Peers, name: str, passport: Passport, clock: Clock) -> None:
        self._peers, self._name, self._passport, self._clock = peers, name, passport, clock
        self._pool: Pool | None = None
        self._target = Target.parse("https://nobody")
        self._made_for: tuple[object, ...] = ()
        self._seen_at = 0.0
        self._closing = KeptTasks(log, "A connection to a host could not be closed")

    def take(self) -> tuple[Pool, Target]:
        peer = self._peers.usable(self._name)
        wanted = (self._passport.context, peer.fingerprint, peer.endpoint)
        if self._pool is None or self._made_for != wanted:
            self._pool = self._replaced(peer)
            self._made_for = wanted
        return self._pool, self._target

    def _replaced(self, peer: Peer) -> Pool:
        if self._pool is not None:
            self._closing.start(self._pool.aclose())
        self._target = Target.parse(Endpoint.parse(peer.endpoint).tools)
        return Pool(self._passport.context, fingerprint=peer.fingerprint)

    def seen(self) -> None:
        now = self._clock.monotonic()
        if now - self._seen_at >= SEEN_SECONDS or not self._seen_at:
            self._seen_at = now
            self._peers.note_seen(self._name)

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()
        await self._closing.wait(1.0)

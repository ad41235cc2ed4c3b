"""The way to a host: how a request gets there, and whether it may go at all, asked for each one."""

import asyncio
import logging
from pathlib import Path
from typing import Protocol

from agent_gate.core.tasks import KeptTasks
from agent_gate.net.pool import Pool, Target, WholeReply
from agent_gate.peers.dialing import Endpoint
from agent_gate.peers.passport import Passport
from agent_gate.peers.records import Peer, Peers

log = logging.getLogger("agent_gate.sources.remote")
JSON = ((b"content-type", b"application/json"),)


class Way(Protocol):
    """How a host is reached."""

    async def request(
        self, method: str, path: str, body: bytes | None, *, deadline: float, most: int, safe: bool
    ) -> WholeReply:
        """One exchange. Raises `PairingRequired` where nobody may be asked, else `NotSent` or `Lost`."""
        ...

    async def wait_until_lost(self) -> None:
        """Return once it is known that the host is gone; where that is not known by itself, wait for ever."""
        ...

    def seen(self) -> None:
        """The host answered."""
        ...

    async def aclose(self) -> None: ...


async def ask(
    pool: Pool,
    target: Target,
    method: str,
    path: str,
    body: bytes | None,
    *,
    deadline: float,
    most: int,
    safe: bool,
) -> WholeReply:
    headers = JSON if body is not None else ()
    return await pool.request(
        method, target, path.encode(), headers, body, deadline=deadline, max_bytes=most, idempotent=safe
    )


async def wait_for_ever() -> None:
    await asyncio.get_running_loop().create_future()


class LocalWay:
    """A Unix socket of this machine: its owner and mode are all the proof there is."""

    def __init__(self, pool: Pool, path: Path) -> None:
        self._pool, self._target = pool, Target.unix(path)

    async def request(
        self, method: str, path: str, body: bytes | None, *, deadline: float, most: int, safe: bool
    ) -> WholeReply:
        return await ask(
            self._pool, self._target, method, path, body, deadline=deadline, most=most, safe=safe
        )

    async def wait_until_lost(self) -> None:
        await wait_for_ever()

    def seen(self) -> None:
        return None

    async def aclose(self) -> None:
        return None


class PairedWay:
    """mTLS to a paired host. A connection belongs to one certificate of each side; another one is another pool."""

    def __init__(self, peers: Peers, name: str, passport: Passport) -> None:
        self._peers, self._name, self._passport = peers, name, passport
        self._pool: Pool | None = None
        self._target = Target.parse("https://nobody")
        self._made_for: tuple[object, ...] = ()
        self._closing = KeptTasks(log, "A connection to a host could not be closed")

    async def request(
        self, method: str, path: str, body: bytes | None, *, deadline: float, most: int, safe: bool
    ) -> WholeReply:
        return await ask(
            self._current(), self._target, method, path, body, deadline=deadline, most=most, safe=safe
        )

    def _current(self) -> Pool:
        peer = self._peers.usable(self._name)
        wanted = (self._passport.context, peer.fingerprint, peer.endpoint)
        if self._pool is None or self._made_for != wanted:
            self._pool = self._replace_pool(peer)
            self._made_for = wanted
        return self._pool

    def _replace_pool(self, peer: Peer) -> Pool:
        if self._pool is not None:
            self._closing.start(self._pool.aclose())
        self._target = Target.parse(Endpoint.parse(peer.endpoint).tools)
        return Pool(self._passport.context, fingerprint=peer.fingerprint)

    async def wait_until_lost(self) -> None:
        await wait_for_ever()

    def seen(self) -> None:
        self._peers.note_seen_lately(self._name)

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()
        await self._closing.wait(1.0)

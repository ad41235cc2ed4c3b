"""Events that a host publishes: kept until the gateway has taken them, sent in their order, at least once."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from agent_gate.core.tasks import ends_within
from agent_gate.errors import GatewayError
from agent_gate.hosts.component import PairedComponent
from agent_gate.net.pool import Pool, Target, WholeReply
from agent_gate.peers.envelope import EVENTS, PeerEvent

log = logging.getLogger("agent_gate.hosts")
OUTBOX_FILE = "events.db"
MOST_KEPT = 10_000
PORTION = 100
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
REFUSED = frozenset({400, 403, 413, 422})
"""What will be refused again: the event is dropped, so that it does not hold up those behind it."""


class EventOutbox:
    """Events that wait. Tools publish from threads, so it has a lock."""

    def __init__(self, folder: Path | None) -> None:
        place = folder / OUTBOX_FILE if folder else ":memory:"
        self._db = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
        self._lock = threading.Lock()
        self._heard: list[Callable[[], object]] = []
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL)"
        )

    def subscribe(self, heard: Callable[[], object]) -> Callable[[], None]:
        """Call back, on whatever thread that happens, when there is something to send; returns the undo."""
        self._heard.append(heard)
        return lambda: self._heard.remove(heard)

    def add(self, event: PeerEvent) -> None:
        """Durable when it returns. When far too many wait, the oldest are given up."""
        with self._lock:
            self._db.execute("INSERT INTO events (body) VALUES (?)", (msgspec.json.encode(event),))
            self._db.execute(
                "DELETE FROM events WHERE seq <= (SELECT MAX(seq) FROM events) - ?", (MOST_KEPT,)
            )
        for heard in tuple(self._heard):
            heard()

    def waiting(self, after: int = 0) -> list[tuple[int, bytes]]:
        with self._lock:
            sql = "SELECT seq, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
            return list(self._db.execute(sql, (after, PORTION)))

    def taken(self, seq: int) -> None:
        """Everything up to this one has arrived."""
        with self._lock:
            self._db.execute("DELETE FROM events WHERE seq <= ?", (seq,))

    def close(self) -> None:
        with self._lock:
            self._db.close()


class Publisher:
    """Sends what waits to the gateway's listener, over mTLS."""

    def __init__(self, outbox: EventOutbox, component: PairedComponent) -> None:
        self._outbox, self._component = outbox, component
        self._news = asyncio.Event()
        self._pool: Pool | None = None
        self._shown = ""
        loop = asyncio.get_running_loop()
        outbox.subscribe(lambda: loop.call_soon_threadsafe(self._news.set))

    async def run(self) -> None:
        wait = FIRST_WAIT
        while True:
            self._news.clear()
            waiting = self._outbox.waiting() if self._component.belonging is not None else []
            for seq, body in waiting:
                if not await self._send(body):
                    break
                self._outbox.taken(seq)
                wait = FIRST_WAIT
            else:
                if waiting:
                    continue
                await ends_within(LONGEST_WAIT, self._news.wait())
                continue
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)

    async def _send(self, body: bytes) -> bool:
        """Whether this event is done with: taken, or refused for good."""
        try:
            reply = await self._post(body)
        except GatewayError as error:
            log.info("An event waits: %s", error.message)
            return False
        if reply.status in REFUSED:
            log.error("The gateway refused an event: %s", reply.body[:300].decode("utf-8", "replace"))
        return reply.status == 202 or reply.status in REFUSED

    async def _post(self, body: bytes) -> WholeReply:
        pool = await self._renew_pool()
        target = Target.parse(self._component.setup.gateway_url.replace("wss:", "https:", 1))
        deadline = asyncio.get_running_loop().time() + 10
        return await pool.request(
            "POST",
            target,
            EVENTS.encode(),
            ((b"content-type", b"application/json"),),
            body,
            deadline=deadline,
            max_bytes=1 << 16,
            idempotent=True,
        )

    async def _renew_pool(self) -> Pool:
        """Connections with the certificate of now."""
        belonging = self._component.belonging
        assert belonging is not None
        if self._pool is None or self._shown != belonging.membership.fingerprint:
            await self.close()
            self._pool = Pool(belonging.context(), verify=belonging.check_gateway)
            self._shown = belonging.membership.fingerprint
        return self._pool

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None


async def offer_events(outbox: EventOutbox, after: int, seconds: float) -> dict[str, Any]:
    """For a gateway on this machine that asks: what waits after `after`, for which it is waited a while."""
    outbox.taken(after)
    found = outbox.waiting(after)
    if not found and seconds > 0:
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        undo = outbox.subscribe(lambda: loop.call_soon_threadsafe(news.set))
        try:
            await ends_within(seconds, news.wait())
        finally:
            undo()
        found = outbox.waiting(after)
    return {"version": "v1", "events": [{"cursor": seq, "event": msgspec.Raw(body)} for seq, body in found]}

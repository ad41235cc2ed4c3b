"""The gateways that share a store: each says that it lives, for a bounded while, by the database's clock."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from agent_gate.core.ports import Clock
from agent_gate.store.statement import Statement, Store

LEASE_SECONDS = 10.0
BEAT_SECONDS = 2.0
FORGET_SECONDS = 7 * 86_400.0
SERVING, DRAINING, STOPPED = "serving", "draining", "stopped"
HEAD = "(SELECT coalesce(max(seq), 0) % 2000000000 + 1 FROM record WHERE chain = gateways.id)"
"""How far a gateway's chain goes, in a number that the column `settled` holds, and never 0: that is unsettled."""
COLUMNS = "id, version, host, pid, address, started_at, state, body"


@dataclass(frozen=True, slots=True, kw_only=True)
class FellowGateway:
    """A gateway as the others know it. `silent` is how many seconds ago it was last heard."""

    id: str
    version: str
    host: str
    pid: int
    address: str
    started_at: float
    state: str
    alive: bool
    silent: float
    body: Mapping[str, Any] = field(default_factory=dict)


class Gateways:
    """This gateway among those that share its store. On a store of its own it is alone, and nothing is written."""

    def __init__(self, store: Store, clock: Clock, version: str) -> None:
        self._store, self._version = store, version
        self.id = store.chain
        self._address, self._state, self._started = "", SERVING, clock.now()
        self._body: Mapping[str, Any] = {}
        self.known: dict[str, FellowGateway] = {}

    def is_alive(self, gateway: str) -> bool:
        """Whether that gateway was alive when they were last looked at; this one is."""
        if gateway == self.id:
            return True
        found = self.known.get(gateway)
        return found is not None and found.alive

    def serves(self, gateway: str) -> bool:
        """Whether another gateway is there and takes more to do."""
        found = self.known.get(gateway)
        return gateway != self.id and found is not None and found.alive and found.state == SERVING

    def list_others(self) -> list[str]:
        """The other gateways that were alive when they were last looked at."""
        return [name for name, one in self.known.items() if one.alive and name != self.id]

    async def join(self) -> None:
        """Be there for the others from now on."""
        if not self._store.shared:
            return
        sql = (
            f"INSERT INTO gateways ({COLUMNS}, ends_at, settled) VALUES (?, ?, ?, ?, ?, ?, ?, ?, {self._ends()}, 0) "
            "ON CONFLICT (id) DO UPDATE SET version = excluded.version, host = excluded.host, pid = excluded.pid, "
            "address = excluded.address, started_at = excluded.started_at, state = excluded.state, "
            "body = excluded.body, ends_at = excluded.ends_at, settled = 0"
        )
        me = self._myself()
        await self._store.write(
            Statement(
                sql,
                (me.id, me.version, me.host, me.pid, me.address, me.started_at, me.state, self._encoded()),
            )
        )
        await self.look()

    async def beat(self, address: str, body: Mapping[str, Any]) -> None:
        """Live on, and say how one does; then see who else does."""
        self._address, self._body = address, body
        if not self._store.shared:
            return
        sql = f"UPDATE gateways SET ends_at = {self._ends()}, settled = 0, address = ?, body = ? WHERE id = ?"
        [there] = await self._store.write(Statement(sql, (address, self._encoded(), self.id)))
        if not there:
            await self.join()
        await self.look()

    async def say(self, state: str) -> None:
        """Tell the others at once that one stops; a gateway that has stopped is dead from now on."""
        self._state = state
        if self._store.shared:
            ends = self._store.now if state == STOPPED else self._ends()
            sql = f"UPDATE gateways SET state = ?, ends_at = {ends} WHERE id = ?"
            await self._store.write(Statement(sql, (state, self.id)))

    async def look(self) -> None:
        """See who is there now."""
        if self._store.shared:
            self.known = {one.id: one for one in await self.list_all()}

    async def list_all(self) -> list[FellowGateway]:
        """Everyone who shares the store, this one among them, as they are now."""
        if not self._store.shared:
            return [self._myself()]
        now = self._store.now
        rows = await self._store.read(
            f"SELECT {COLUMNS}, ends_at > {now}, {now} - (ends_at - {LEASE_SECONDS}) FROM gateways ORDER BY id"
        )
        return [fellow_of(*row) for row in rows]

    async def list_unsettled(self) -> list[tuple[str, int]]:
        """The dead whose calls nobody has seen to yet, and how far their chains go: one that came back may have written
        more before it said that it lives."""
        if not self._store.shared:
            return []
        sql = f"SELECT id, {HEAD} FROM gateways WHERE ends_at <= {self._store.now} AND settled <> {HEAD} ORDER BY id"
        return [(gateway, head) for gateway, head in await self._store.read(sql)]

    async def settle(self, gateway: str, head: int) -> None:
        """What a dead one left behind so far was seen to; should it live on, it counts as unsettled again."""
        sql = f"UPDATE gateways SET settled = ? WHERE id = ? AND ends_at <= {self._store.now}"
        await self._store.write(Statement(sql, (head, gateway)))

    async def forget_old(self) -> None:
        """Forget those that have been gone for a week."""
        if self._store.shared:
            sql = (
                f"DELETE FROM gateways WHERE settled > 0 AND ends_at <= {self._store.now} - {FORGET_SECONDS}"
            )
            await self._store.write(Statement(sql))

    def _ends(self) -> str:
        return f"{self._store.now} + {LEASE_SECONDS}"

    def _encoded(self) -> str:
        return msgspec.json.encode(self._body).decode()

    def _myself(self) -> FellowGateway:
        return FellowGateway(
            id=self.id,
            version=self._version,
            host=socket.gethostname(),
            pid=os.getpid(),
            address=self._address,
            started_at=self._started,
            state=self._state,
            alive=True,
            silent=0.0,
            body=self._body,
        )


def fellow_of(
    ident: str,
    version: str,
    host: str,
    pid: int,
    address: str,
    started_at: float,
    state: str,
    body: str,
    alive: bool,
    silent: float,
) -> FellowGateway:
    return FellowGateway(
        id=ident,
        version=version,
        host=host,
        pid=pid,
        address=address,
        started_at=started_at,
        state=state if alive or state == STOPPED else "lost",
        alive=bool(alive),
        silent=max(0.0, round(float(silent), 1)),
        body=msgspec.json.decode(body),
    )

"""Which connection of an agent was cut just before its present one.

An agent that does not acknowledge looks for its JSON-RPC ids among the kept results when it has connected again. They
are its own only for that one connection: a new process counts from 1 again. Where two connections of an agent were
open at once, nobody can tell whose rows they are, so neither is anybody's predecessor.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from agent_gate.errors import GatewayError
from agent_gate.store.gateways import LEASE_SECONDS, Gateways
from agent_gate.store.statement import Conflict, Statement, Store

PREFIX, OPEN = "connection of ", "connected "
NOTE = "INSERT INTO kv (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
NOTE_AFTER = f"{NOTE} WHERE kv.value = ?"
LOOK_AGAIN = 0.1


class Predecessors:
    """The last session of each agent, kept in the store so that a restart of the gateway is a cut like any other."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[str, str] = {}
        self._open: dict[str, set[str]] = {}

    async def load(self) -> None:
        rows = await self._store.read("SELECT name, value FROM kv WHERE name LIKE ?", (f"{PREFIX}%",))
        self._last = {name.removeprefix(PREFIX): session for name, session in rows}

    def note_opened(self, caller: str, session: str) -> Coroutine[Any, Any, str]:
        """Note a new connection; gives the session that was cut just before it, or nothing."""
        others = self._open.setdefault(caller, set())
        alone = not others
        others.add(session)
        return self._find(caller, session, alone)

    async def _find(self, caller: str, session: str, alone: bool) -> str:
        before = self._last.get(caller, "") if alone else ""
        self._last[caller] = session if alone else ""
        self._store.post(Statement(NOTE, (PREFIX + caller, self._last[caller])))
        return before

    def closed(self, caller: str, session: str) -> None:
        others = self._open.get(caller, set())
        others.discard(session)
        if not others:
            self._open.pop(caller, None)


class SharedPredecessors(Predecessors):
    """The same among gateways that share a store: an agent may come back to another one. Each says in the store which
    agents are connected to it, and a connection counts as open while the gateway that said so lives."""

    def __init__(self, store: Store, gateways: Gateways) -> None:
        super().__init__(store)
        self._gateways = gateways
        self._turns: dict[str, asyncio.Lock] = {}

    async def load(self) -> None:
        """Nobody is connected to a gateway that has just started."""
        mine = Statement("DELETE FROM kv WHERE name LIKE ? AND value = ?", (f"{OPEN}%", self._store.chain))
        await self._store.write(mine)

    async def _find(self, caller: str, session: str, alone: bool) -> str:
        turn = self._turns.setdefault(caller, asyncio.Lock())
        try:
            async with turn:
                return await self._take_turn(caller, session, alone)
        except GatewayError:
            return ""
        finally:
            if caller not in self._open:
                self._let_go(caller)

    async def _take_turn(self, caller: str, session: str, alone: bool) -> str:
        here = Statement(NOTE, (self._row(caller, self._store.chain), self._store.chain))
        if alone and not await self._is_open_elsewhere(caller):
            before = await self._read_last(caller)
            try:
                await self._store.write(
                    Statement(NOTE_AFTER, (PREFIX + caller, session, before), expect=1), here
                )
                return before
            except Conflict:
                pass  # it connected to another gateway at the same moment
        await self._store.write(Statement(NOTE, (PREFIX + caller, "")), here)
        return ""

    async def _read_last(self, caller: str) -> str:
        rows = await self._store.read("SELECT value FROM kv WHERE name = ?", (PREFIX + caller,))
        return str(rows[0][0]) if rows else ""

    async def _is_open_elsewhere(self, caller: str) -> bool:
        """Whether another gateway has a connection of this agent too. One that is being closed, or was cut with its
        gateway, is not there any more when this has waited for it."""
        deadline = asyncio.get_running_loop().time() + LEASE_SECONDS + 2.0
        while asyncio.get_running_loop().time() < deadline:
            names = [self._row(caller, name) for name in self._gateways.list_others()]
            marks = ", ".join("?" * len(names))
            sql = f"SELECT 1 FROM kv WHERE name IN ({marks})"
            if not names or not await self._store.read(sql, tuple(names)):
                return False
            await asyncio.sleep(LOOK_AGAIN)
        return True

    def _row(self, caller: str, gateway: str) -> str:
        return f"{OPEN}{caller} to {gateway}"

    def closed(self, caller: str, session: str) -> None:
        super().closed(caller, session)
        if caller not in self._open:
            self._let_go(caller)

    def _let_go(self, caller: str) -> None:
        turn = self._turns.get(caller)
        if turn is not None and not turn.locked():
            del self._turns[caller]
        self._store.post(Statement("DELETE FROM kv WHERE name = ?", (self._row(caller, self._store.chain),)))

"""Which connection of an agent was cut just before its present one.

An agent that does not acknowledge looks for its JSON-RPC ids among the kept results when it has connected again. They
are its own only for that one connection: a new process counts from 1 again. Where two connections of an agent were
open at once, nobody can tell whose rows they are, so neither is anybody's predecessor.
"""

from agent_gate.store.statement import Statement, Store

PREFIX = "connection of "
NOTE = "INSERT INTO kv (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class Predecessors:
    """The last session of each agent, kept in the store so that a restart of the gateway is a cut like any other."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[str, str] = {}
        self._open: dict[str, set[str]] = {}

    async def load(self) -> None:
        rows = await self._store.read("SELECT name, value FROM kv WHERE name LIKE ?", (f"{PREFIX}%",))
        self._last = {name.removeprefix(PREFIX): session for name, session in rows}

    def opened(self, caller: str, session: str) -> str:
        """Note a new connection; the session that was cut just before it, or nothing."""
        others = self._open.setdefault(caller, set())
        before = self._last.get(caller, "") if not others else ""
        self._last[caller] = session if not others else ""
        others.add(session)
        self._store.post(Statement(NOTE, (PREFIX + caller, self._last[caller])))
        return before

    def closed(self, caller: str, session: str) -> None:
        others = self._open.get(caller, set())
        others.discard(session)
        if not others:
            self._open.pop(caller, None)

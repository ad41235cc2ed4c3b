"""Sessions in the store, where gateways share it: a client that comes to another gateway goes on with its session.

A session is written when it begins, and when what it asked to hear changes; a call writes nothing of it. Its streams stay
where they are: what was sent on one and lost is lost, and whoever comes back for it elsewhere is told so.
"""

import msgspec

from agent_gate.core.call import Caller
from agent_gate.core.ports import Clock
from agent_gate.mcp.revisions import BY_HEADER
from agent_gate.store.statement import Statement, Store
from agent_gate.surfaces.mcp.sessions.sessions import McpSession

KEEP_SECONDS = 7 * 86_400.0
LONGEST_ID = 64
KEEP = (
    "INSERT INTO mcp_sessions (id, caller, used_at, body) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, body = excluded.body"
)


class KeptSession(msgspec.Struct):
    """What another gateway has to know of a session."""

    revision: str
    mode: str
    capabilities: dict[str, object]
    level: str
    watching: list[str]


class SharedSessions:
    """The sessions of all gateways on one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def _keeping(self, session: McpSession) -> Statement:
        kept = KeptSession(
            session.revision.name,
            session.mode,
            dict(session.capabilities),
            session.level,
            sorted(session.watching),
        )
        body = msgspec.json.encode(kept).decode()
        return Statement(KEEP, (session.id, session.caller.name, self._clock.now(), body))

    async def keep(self, session: McpSession) -> None:
        """Durable before the client knows of it: its next request may come to another gateway."""
        await self._store.write(self._keeping(session))

    def keep_change(self, session: McpSession) -> None:
        self._store.post(self._keeping(session))

    async def find(self, ident: str, caller: Caller) -> McpSession | None:
        """The session, if it is this caller's."""
        if len(ident) > LONGEST_ID or not ident.isalnum():
            return None
        sql = "SELECT body FROM mcp_sessions WHERE id = ? AND caller = ?"
        rows = await self._store.read(sql, (ident, caller.name))
        if not rows:
            return None
        kept = msgspec.json.decode(rows[0][0], type=KeptSession)
        revision = BY_HEADER.get(kept.revision.encode())
        if revision is None:
            return None
        session = McpSession(caller, revision, kept.mode, kept.capabilities)
        session.id, session.level, session.watching = ident, kept.level, set(kept.watching)
        return session

    def forget(self, session: McpSession) -> None:
        """The client ended it: it is nobody's any more, on no gateway."""
        self._store.post(Statement("DELETE FROM mcp_sessions WHERE id = ?", (session.id,)))

    async def purge(self) -> None:
        """Forget what nobody ended, a week later."""
        before = self._clock.now() - KEEP_SECONDS
        await self._store.write(Statement("DELETE FROM mcp_sessions WHERE used_at <= ?", (before,)))

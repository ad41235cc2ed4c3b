"""Sessions in the store, where gateways share it: a client that comes to another gateway goes on with its session.

A session is written when it begins, and when what it asked to hear changes; a call writes nothing of it. Its streams stay
where they are: what was sent on one and lost is lost, and whoever comes back for it elsewhere is told so. What a client
says about a request on another gateway, its answer to a question or that it wants it no more, is passed on to that one.
"""

import logging
from collections.abc import Callable

import msgspec

from agent_gate.core.call import Caller
from agent_gate.core.ports import Clock
from agent_gate.mcp.revisions import BY_HEADER
from agent_gate.store.gateways import Gateways
from agent_gate.store.statement import Statement, Store
from agent_gate.store.words import GatewayWords, Word
from agent_gate.surfaces.mcp.sessions.sessions import McpSession
from agent_gate.vault.sealing import SealingKey, VaultFault

log = logging.getLogger("agent_gate.surfaces.mcp")

KEEP_SECONDS = 7 * 86_400.0
LONGEST_ID = 64
KIND = "session"
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

    def __init__(
        self, store: Store, clock: Clock, words: GatewayWords, gateways: Gateways, key: bytes
    ) -> None:
        self._store, self._clock, self._words, self._gateways = store, clock, words, gateways
        self._key = SealingKey(key)

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
        session.set_apart()
        return session

    async def pass_on(self, ident: str, message: bytes) -> None:
        """Tell the other gateways what a client said in its session about something that is not here."""
        sealed = self._key.seal(message, KIND, ident)
        others = self._gateways.list_others()
        await self._words.say(*(Word(gateway, KIND, ident, sealed) for gateway in others))

    def listen(self, heard: Callable[[str, bytes], None]) -> None:
        """Be told the session and the message of what clients said elsewhere."""

        def take(_teller: str, ident: str, sealed: bytes) -> None:
            try:
                message = self._key.open(sealed, KIND, ident)
            except VaultFault:
                log.warning("What a client said on another gateway cannot be read, and counts for nothing")
            else:
                heard(ident, message)

        self._words.subscribe(KIND, take)

    def forget(self, session: McpSession) -> None:
        """The client ended it: it is nobody's any more, on no gateway."""
        self._store.post(Statement("DELETE FROM mcp_sessions WHERE id = ?", (session.id,)))

    async def purge(self) -> None:
        """Forget what nobody ended, a week later."""
        before = self._clock.now() - KEEP_SECONDS
        await self._store.write(Statement("DELETE FROM mcp_sessions WHERE used_at <= ?", (before,)))

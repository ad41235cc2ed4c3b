"""Words: what one gateway says to another about something that both have a part in, such as a call that one of them made
and the other one runs.

A word is a row until it is heard. Rows of one gateway are committed in their order, so they are heard in it, each once.
A notice says that there is one; whoever says something seals it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import NamedTuple

from agent_gate.errors import DependencyUnavailable
from agent_gate.store.gathered import Gathered
from agent_gate.store.statement import Statement, Store

log = logging.getLogger("agent_gate.notices")
MOST_AT_A_LOOK = 500
KEEP_SECONDS = 600.0
UNHEARD = "SELECT seq, kind, teller, about, body FROM words WHERE hearer = ? ORDER BY seq LIMIT ?"
WordHeard = Callable[[str, str, bytes], None]
"""Takes who says it, what it is about, and the word."""


class Word(NamedTuple):
    hearer: str
    kind: str
    about: str
    body: bytes


class GatewayWords:
    """Says words to other gateways and hears what they say to this one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._saying: Gathered[Word] = Gathered(store, self._inserting)
        self._listeners: dict[str, WordHeard] = {}
        self._heard: set[int] = set()
        """Those whose rows are still there."""
        self._turn = asyncio.Lock()

    def subscribe(self, kind: str, heard: WordHeard) -> None:
        self._listeners[kind] = heard

    async def begin(self) -> None:
        """What was said to this gateway before it started is about nothing that it has."""
        if self._store.shared:
            await self._store.write(Statement("DELETE FROM words WHERE hearer = ?", (self._store.chain,)))

    async def say(self, *words: Word) -> None:
        """Return when they are durable."""
        for said in [self._saying.add(word) for word in words]:
            await said

    def _inserting(self, words: Sequence[Word]) -> Statement:
        rows = ", ".join([f"(?, ?, ?, ?, ?, {self._store.now})"] * len(words))
        return Statement(
            f"INSERT INTO words (teller, hearer, kind, about, body, at) VALUES {rows}",
            tuple(part for word in words for part in (self._store.chain, *word)),
        )

    async def hear(self, hearers: Collection[str] | None) -> None:
        """Somebody was told something; None: perhaps this gateway."""
        if hearers is None or self._store.chain in hearers:
            await self.look()

    async def look(self) -> None:
        """Hear what was said to this gateway."""
        async with self._turn:
            while await self._look_once() == MOST_AT_A_LOOK:
                pass

    async def _look_once(self) -> int:
        rows = await self._store.read(UNHEARD, (self._store.chain, MOST_AT_A_LOOK))
        fresh = [row for row in rows if row[0] not in self._heard]
        self._heard = {row[0] for row in rows}
        for _seq, kind, teller, about, body in fresh:
            self._tell(kind, teller, about, body)
        if rows:
            await self._forget([row[0] for row in rows], wait=len(rows) == MOST_AT_A_LOOK)
        return len(rows)

    def _tell(self, kind: str, teller: str, about: str, body: bytes) -> None:
        heard = self._listeners.get(kind)
        try:
            if heard is not None:
                heard(teller, about, body)
        except Exception:  # the boundary: the other words are still heard
            log.exception("A word of another gateway could not be taken")

    async def _forget(self, seqs: Sequence[int], *, wait: bool) -> None:
        forgetting = Statement(f"DELETE FROM words WHERE seq IN ({', '.join('?' * len(seqs))})", tuple(seqs))
        if wait:
            await self._store.write(forgetting)
        else:
            with suppress(DependencyUnavailable):  # the gateway stops
                self._store.post(forgetting)

    async def purge(self) -> None:
        """Forget what was said to gateways that are gone."""
        await self._store.write(Statement(f"DELETE FROM words WHERE at < {self._store.now} - {KEEP_SECONDS}"))

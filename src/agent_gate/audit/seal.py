"""Seals on the record: an HMAC over the head of the chain, with a key that is kept outside the database.

A bare hash chain cannot show that its end was cut off or rewritten as a whole; a seal can, and where the seal is gone
too, the note of it outside the database. Each seal also says where the oldest unfinished call begins, so that a
restart reads the record from there only.
"""

import asyncio
import hmac
import logging
import secrets
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from agent_gate.audit.heads import Heads
from agent_gate.audit.record import SELECT, Row, encode
from agent_gate.core.call import State
from agent_gate.core.ports import Clock, SystemClock
from agent_gate.errors import ConfigError, DependencyUnavailable
from agent_gate.store import Conflict, Head, Statement, Store
from agent_gate.store.once import make_once

log = logging.getLogger(__name__)

EVERY = 1000
PAGE = 500
NOTE_SECONDS = 5.0
"""A busy gateway seals many times a second; how far it came is noted outside the database now and then."""
KEY_BYTES = 32
OPEN_STATES = tuple(state.value for state in State if not state.final)
CALL, STATE, SEQ = 0, 3, -2
"""Where they stand in a row as it is written."""
OPEN = ", ".join(f"'{state}'" for state in OPEN_STATES)
INSERT = "INSERT INTO seals (chain, seq, hash, mac, open_from, at) VALUES (?, ?, ?, ?, ?, ?)"


class Seal(msgspec.Struct, frozen=True):
    chain: str
    seq: int
    hash: str
    mac: str
    open_from: int
    at: float

    def genuine(self, key: bytes) -> bool:
        made = mac(key, self.chain, Head(self.seq, self.hash), self.open_from)
        return hmac.compare_digest(str(self.mac).encode(), made.encode())


def mac(key: bytes, chain: str, head: Head, open_from: int) -> str:
    return hmac.digest(key, encode((chain, head.seq, head.hash, open_from)), "sha256").hex()


def ensure_key(path: Path) -> bytes:
    """The sealing key at `path`; made, for the owner's eyes only, where there is none."""
    try:
        if not path.exists():
            make_once(path, secrets.token_hex(KEY_BYTES))
        key = bytes.fromhex(path.read_text("ascii"))
    except OSError as error:
        raise ConfigError(f"The record's key {path} cannot be read or made: {error.strerror}.") from error
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(f"{path} is no key of the record. Restore it from a backup, or move it away.")
    return key


async def read_seals(store: Store, chain: str) -> list[Seal]:
    """All seals of a chain, oldest first."""
    found = await store.read(
        "SELECT chain, seq, hash, mac, open_from, at FROM seals WHERE chain = ? ORDER BY seq", (chain,)
    )
    return [Seal(*values) for values in found]


async def open_from(store: Store, chain: str) -> int:
    """The first row that can belong to an unfinished call, as the latest seal says."""
    found = await store.read(
        "SELECT open_from FROM seals WHERE chain = ? ORDER BY seq DESC LIMIT 1", (chain,)
    )
    return int(found[0][0]) if found else 1


async def read_unfinished(store: Store, chain: str) -> list[Row]:
    """All rows, in order, of each call whose latest state was written by this chain and is not final."""
    found = await store.read(
        f"""SELECT call FROM record AS latest
        WHERE chain = ? AND seq >= ? AND state IN ({OPEN})
          AND NOT EXISTS (SELECT 1 FROM record AS later WHERE later.call = latest.call AND later.step > latest.step)
        ORDER BY seq""",
        (chain, await open_from(store, chain)),
    )
    rows: list[Row] = []
    for (call,) in found:
        rows += [
            Row(*values) for values in await store.read(f"{SELECT} WHERE call = ? ORDER BY step", (call,))
        ]
    return rows


class Sealer:
    """Seals the store's own chain every `every` rows while entered, and once more at the end."""

    def __init__(
        self,
        store: Store,
        key: bytes,
        *,
        every: int = EVERY,
        clock: Clock | None = None,
        heads: Heads | None = None,
    ) -> None:
        self._store = store
        self._key = key
        self._heads = heads
        self._every = every
        self._clock = clock or SystemClock()
        self._due = asyncio.Event()
        self._turn = asyncio.Lock()
        self._closing = False
        self._news: deque[list[tuple[str, str, int]]] = deque()
        self._open: dict[str, int] = {}
        self._seen = self._sealed = self._noted = 0
        self._note_from = 0.0

    async def __aenter__(self) -> Self:
        latest = await self._store.read(
            "SELECT seq, open_from FROM seals WHERE chain = ? ORDER BY seq DESC LIMIT 1", (self._store.chain,)
        )
        if latest:
            # No further than the head, should the end of the record have been cut off.
            self._sealed = min(latest[0][0], self._store.head.seq)
            self._seen = min(latest[0][1] - 1, self._store.head.seq)
        await self._is_as_noted()
        loop = asyncio.get_running_loop()
        self._store.watch(lambda head, rows: self._grown(head, rows, loop))
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        self._store.hurry()
        self._due.set()
        await self._task
        try:
            await self._store.flush()
            await self.seal()
        except DependencyUnavailable as unavailable:
            log.warning("The last rows are not sealed: %s", unavailable.message)

    def _grown(self, head: Head, rows: Sequence[tuple[Any, ...]], loop: asyncio.AbstractEventLoop) -> None:
        """Called on the store's thread, which must not see an error of ours."""
        self._news.append([(row[CALL], row[STATE], row[SEQ]) for row in rows])
        if self._closing or head.seq - self._sealed < self._every:
            return
        try:
            loop.call_soon_threadsafe(self._due.set)
        except RuntimeError:
            log.debug("The event loop ended before the sealer")

    async def _run(self) -> None:
        while not self._closing:
            await self._due.wait()
            self._due.clear()
            # Commits during the last seal called again; that seal may cover them.
            if self._store.head.seq - self._sealed < self._every:
                continue
            try:
                await self.seal()
            except DependencyUnavailable as unavailable:
                log.warning("The seal waits for the next row: %s", unavailable.message)
            except Exception:  # the boundary: the next rows must not stay unsealed for it
                log.exception("Sealing the record failed; it is tried again with the next rows")

    async def seal(self) -> None:
        """Seal the head as it is now, unless it is sealed already; note it, unless one was noted a moment ago."""
        async with self._turn:
            head = self._store.head
            if head.seq > self._sealed:
                await self._seal(head)
            if head.seq > self._noted and (self._closing or self._clock.monotonic() >= self._note_from):
                await self._note_head(head)

    async def _seal(self, head: Head) -> None:
        chain = self._store.chain
        first_open = await self._find_first_open(head)
        stamp = mac(self._key, chain, head, first_open)
        values = (chain, head.seq, head.hash, stamp, first_open, self._clock.now())
        try:
            await self._store.write(Statement(INSERT, values))
        except Conflict:
            log.warning("Row %d of chain %s was sealed before; verify the record", head.seq, chain)
        self._sealed = head.seq

    async def _note_head(self, head: Head) -> None:
        log.info(
            "The record was sealed", extra={"chain": self._store.chain, "seq": head.seq, "hash": head.hash}
        )
        self._noted = head.seq
        self._note_from = self._clock.monotonic() + NOTE_SECONDS
        if self._heads is None or not await self._is_as_noted():
            return
        try:
            await asyncio.to_thread(self._heads.note, self._store.chain, head)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._heads.path, error.strerror)

    async def _is_as_noted(self) -> bool:
        """Whether the record still holds what was noted of it. Where not, the note stays: it is all that says so."""
        if self._heads is None or (self._heads.genuine and await self._holds(self._heads)):
            return True
        log.error(
            "The record is not what %s says; see `agent-gate audit verify`. If you put another store in its place, "
            "move that file and %s away",
            self._heads.path,
            self._heads.marks_path,
        )
        return False

    async def _holds(self, heads: Heads) -> bool:
        chain = self._store.chain
        noted = heads.known.get(chain)
        if noted is None:
            return chain not in heads.missing
        sql = "SELECT hash FROM record WHERE chain = ? AND seq = ?"
        return await self._store.read(sql, (chain, noted.seq)) == [(noted.hash,)]

    async def _find_first_open(self, head: Head) -> int:
        """The lowest row of a call that is not final yet; reads only what it was not told of."""
        while self._news:
            for call, state, seq in self._news.popleft():
                if seq == self._seen + 1:
                    self._note(call, state, seq)
        while self._seen < head.seq:
            upto = min(self._seen + PAGE, head.seq)
            for row in await self._store.read(
                "SELECT call, state, seq FROM record WHERE chain = ? AND seq > ? AND seq <= ? ORDER BY seq",
                (self._store.chain, self._seen, upto),
            ):
                self._note(*row)
            self._seen = upto
        await self._drop_finished_elsewhere()
        return min(self._open.values(), default=head.seq + 1)

    def _note(self, call: str, state: str, seq: int) -> None:
        self._seen = seq
        if state in OPEN_STATES:
            self._open.setdefault(call, seq)
        else:
            self._open.pop(call, None)

    async def _drop_finished_elsewhere(self) -> None:
        """Forget calls whose last row another gateway wrote, into a chain of its own."""
        calls = list(self._open)
        for start in range(0, len(calls), PAGE):
            for (call,) in await self._read_finished(calls[start : start + PAGE]):
                del self._open[call]

    async def _read_finished(self, calls: Sequence[str]) -> list[tuple[str]]:
        marks = ", ".join("?" * len(calls))
        sql = f"SELECT DISTINCT call FROM record WHERE call IN ({marks}) AND state NOT IN ({OPEN})"
        return await self._store.read(sql, tuple(calls))

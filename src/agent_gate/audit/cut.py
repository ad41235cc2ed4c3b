"""The beginning of the record, cut away on purpose: old rows go, and a sealed cut says up to where, when and by whom.

A cut holds the hash of the last row that went, which the first row that stays is linked to, under an HMAC with the
key that is outside the database. So what is left verifies from there, and rows that somebody else removed are missed.
The chain of a gateway that is gone for good is cut by another, with a key that all of them have.
"""

import asyncio
import hmac
import logging
from typing import NamedTuple

import msgspec

from agent_gate.audit.heads import Heads
from agent_gate.audit.record import encode, row
from agent_gate.audit.seal import OPEN
from agent_gate.core.call import State, new_id
from agent_gate.core.ports import Clock
from agent_gate.store import Statement, Store

log = logging.getLogger(__name__)

STEP = 500
"""Rows that go with one commit: few enough that nobody who waits for one notices."""
CUT_CALL = "audit:cut"
INSERT = "INSERT INTO cuts (chain, at, seq, hash, made_by, mac) VALUES (?, ?, ?, ?, ?, ?)"


class Cut(msgspec.Struct, frozen=True):
    """All rows of `chain` up to `seq`, whose hash is `hash`, were taken away at `at` by `made_by`."""

    chain: str
    at: float
    seq: int
    hash: str
    made_by: str
    mac: str

    def genuine(self, key: bytes) -> bool:
        made = mac(key, self.chain, self.at, self.seq, self.hash, self.made_by)
        return hmac.compare_digest(str(self.mac).encode(), made.encode())


def mac(key: bytes, chain: str, at: float, seq: int, hash_: str, made_by: str) -> str:
    return hmac.digest(key, encode(("cut", chain, at, seq, hash_, made_by)), "sha256").hex()


async def read_cuts(store: Store, chain: str) -> list[Cut]:
    """All cuts of a chain, oldest first."""
    found = await store.read(
        "SELECT chain, at, seq, hash, made_by, mac FROM cuts WHERE chain = ? ORDER BY seq", (chain,)
    )
    return [Cut(*values) for values in found]


class LastGone(NamedTuple):
    """A row that may go, and all before it."""

    seq: int
    hash: str
    at: float


class Cutter:
    """Cuts the store's own chain with its own key, and with `common` those of others that are gone."""

    def __init__(
        self, store: Store, key: bytes, clock: Clock, heads: Heads | None = None, common: bytes = b""
    ) -> None:
        self._store, self._key, self._clock, self._heads, self._common = store, key, clock, heads, common
        self._turn = asyncio.Lock()

    async def cut(self, before: float, made_by: str) -> int:
        """Take away the calls that ended before that moment, up to the first that did not; how many rows went."""
        return await self._cut(self._store.chain, self._key, before, made_by)

    async def cut_gone(self, chain: str, before: float, made_by: str) -> int:
        """The same in the chain of a gateway that is gone; its last row stays, in case that it comes back."""
        return await self._cut(chain, self._common, before, made_by)

    async def _cut(self, chain: str, key: bytes, before: float, made_by: str) -> int:
        async with self._turn:
            began, gone = self._clock.now(), 0
            last: LastGone | None = None
            while (place := await self._find_next(chain, last, before)) is not None:
                gone += await self._take_away(chain, key, last, place, began, made_by)
                last = place
            if last is not None:
                await self._put_on_record(chain, last, gone, made_by)
            return gone

    async def _find_next(self, chain: str, last: LastGone | None, before: float) -> LastGone | None:
        """The end of the next rows that may go; None where there are none. It begins behind the `last` that went, since
        PostgreSQL still walks over what was deleted just now."""
        rows = await self._store.read(
            "SELECT seq, hash, at, call FROM record WHERE chain = ? AND seq > ? AND seq < ? ORDER BY seq LIMIT ?",
            (chain, last.seq if last else 0, await self._find_first_kept(chain), STEP),
        )
        stay = await self._find_staying({call for *_, call in rows}, before)
        found = None
        for seq, hash_, at, call in rows:
            if call in stay or at >= before:
                break
            found = LastGone(seq, hash_, at)
        return found

    async def _find_first_kept(self, chain: str) -> int:
        """The last row that was sealed, which stays with all that follow: the seal and the note of it stand on it. Of a
        chain that nobody writes, its last row."""
        if chain != self._store.chain:
            [(last,)] = await self._store.read("SELECT max(seq) FROM record WHERE chain = ?", (chain,))
            return int(last or 0)
        found = await self._store.read("SELECT max(seq) FROM seals WHERE chain = ?", (chain,))
        noted = self._heads.known.get(chain) if self._heads is not None else None
        return min(found[0][0] or 0, noted.seq if noted is not None else found[0][0] or 0)

    async def _find_staying(self, calls: set[str], before: float) -> set[str]:
        """Those that have not ended, on whatever gateway, and those that ended later."""
        if not calls:
            return set()
        marks = ", ".join("?" * len(calls))
        found = await self._store.read(
            f"SELECT call FROM record WHERE call IN ({marks}) GROUP BY call "
            f"HAVING max(at) >= ? OR max(CASE WHEN state IN ({OPEN}) THEN 0 ELSE 1 END) = 0",
            (*sorted(calls), before),
        )
        return {call for (call,) in found}

    async def _take_away(
        self, chain: str, key: bytes, last: LastGone | None, place: LastGone, began: float, made_by: str
    ) -> int:
        """One commit: the rows and their seals go, and the cut of this run stands behind the last of them."""
        seal = mac(key, chain, began, place.seq, place.hash, made_by)
        counts = await self._store.write(
            Statement("DELETE FROM cuts WHERE chain = ? AND at = ?", (chain, began)),
            Statement(INSERT, (chain, began, place.seq, place.hash, made_by, seal)),
            Statement("DELETE FROM seals WHERE chain = ? AND seq <= ?", (chain, place.seq)),
            Statement(
                "DELETE FROM record WHERE chain = ? AND seq > ? AND seq <= ?",
                (chain, last.seq if last else 0, place.seq),
            ),
        )
        return counts[-1]

    async def _put_on_record(self, chain: str, last: LastGone, gone: int, made_by: str) -> None:
        now, other = self._clock.now(), {"chain": chain} if chain != self._store.chain else {}
        body = {
            "arguments": {"rows": gone, "up_to": last.seq, "until": last.at, **other},
            "decision": "allow",
            "marks": {"received": now},
            "signature": f"{CUT_CALL}(up_to={last.seq})",
            "surface": "audit",
            "wire": CUT_CALL,
        }
        await self._store.write(row(new_id(), State.COMPLETED, now, made_by, CUT_CALL, body))
        log.info("The record was cut", extra={"chain": chain, "seq": last.seq, "rows": gone})

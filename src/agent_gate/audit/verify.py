"""The record into a report: every row that was changed, removed, moved or cut off, and every false seal."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from agent_gate.audit.cut import Cut, read_cuts
from agent_gate.audit.heads import Heads
from agent_gate.audit.record import SELECT, Row
from agent_gate.audit.seal import Seal, read_seals
from agent_gate.store import Head, Store
from agent_gate.store.chain import GENESIS, link

PAGE = 500
LOWEST = -(1 << 63)
TamperKind = Literal["changed", "removed", "cut", "rewritten", "forged seal"]
# From one chain to the next, since a database reads every row to find which are different.
CHAINS = """WITH RECURSIVE one (chain) AS (
    SELECT min(chain) FROM record
    UNION ALL SELECT (SELECT min(chain) FROM record WHERE chain > one.chain) FROM one WHERE one.chain IS NOT NULL)
  SELECT chain FROM one WHERE chain IS NOT NULL UNION SELECT chain FROM seals UNION SELECT chain FROM cuts"""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something is wrong with row `seq` of `chain`."""

    chain: str
    seq: int
    kind: TamperKind
    text: str

    def __str__(self) -> str:
        return f"{self.chain} {self.seq}: {self.text}"


@dataclass(frozen=True, slots=True)
class KnownCut:
    """The rows of `chain` up to `seq` were taken away on purpose; the record is whole from there on."""

    chain: str
    seq: int
    at: float
    made_by: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a walk over the record found. `unsealed` rows at the end are covered by no seal yet. `elsewhere` are the
    chains of other gateways, whose links were checked here and whose seals only they can check."""

    rows: int
    seals: int
    unsealed: int
    problems: tuple[Problem, ...]
    cuts: tuple[KnownCut, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


async def list_chains(store: Store) -> list[str]:
    """Every chain that the record knows of."""
    return [chain for (chain,) in await store.read(CHAINS)]


async def verify(
    store: Store, key: bytes, heads: Heads | None = None, common: bytes | None = None
) -> VerifyReport:
    """Walk every chain of the record from its first row to its last. `common` is the key with which gateways cut the
    chains of others that are gone."""
    keys = (key,) if common is None else (key, common)
    noted = heads.known if heads is not None else {}
    written = {store.chain: store.head}
    found = await store.read(CHAINS)
    # Whoever tampers may leave values of any type: SQLite keeps them all.
    chains = sorted({chain for (chain,) in found} | noted.keys(), key=str)
    missing = heads.missing if heads is not None else {}
    parts = [
        await _verify_chain(
            store, chain, keys, [known[chain] for known in (written, noted) if chain in known]
        )
        for chain in chains
    ]
    if heads is not None and not heads.genuine:
        parts.append(VerifyReport(0, 0, 0, (_unreadable(store.chain, heads),)))
    if heads is not None and missing:
        there = {chain for (chain,) in found}
        gone = tuple(_gone(chain, at, heads, chain in there) for chain, at in sorted(missing.items()))
        parts.append(VerifyReport(0, 0, 0, gone))
    return VerifyReport(
        rows=sum(part.rows for part in parts),
        seals=sum(part.seals for part in parts),
        unsealed=sum(part.unsealed for part in parts),
        problems=tuple(problem for part in parts for problem in part.problems),
        cuts=tuple(cut for part in parts for cut in part.cuts),
        elsewhere=tuple(chain for part in parts for chain in part.elsewhere),
    )


async def _verify_chain(
    store: Store, chain: str, keys: Sequence[bytes], known: Sequence[Head]
) -> VerifyReport:
    key, found, made = keys[0], await read_seals(store, chain), await read_cuts(store, chain)
    signed = any(seal.genuine(key) for seal in found) or any(cut.genuine(key) for cut in made)
    others = store.shared and chain != store.chain and not signed
    problems = [_forged(seal) for seal in found if not others and not seal.genuine(key)]
    problems += [_forged_cut(cut) for cut in made if not others and not _made_with(cut, keys)]
    sealed = {seal.seq: seal.hash for seal in found if others or seal.genuine(key)}
    walk = _Walk(chain, sealed, {head.seq: head.hash for head in known})
    walk.skip(await _read_last_cut(store, chain, None if others else keys))
    async for row in _read_rows(store, chain):
        if walk.misses(row):
            # Rows may have been cut since the walk began.
            walk.skip(await _read_last_cut(store, chain, None if others else keys))
        problems += walk.check(row)
    problems += walk.end()
    latest = max(walk.sealed, default=0)
    cut = (walk.cut,) if walk.cut is not None else ()
    elsewhere = (chain,) if others and found else ()
    unsealed = max(0, walk.seq - latest)
    return VerifyReport(walk.rows, len(found), unsealed, tuple(problems), cut, elsewhere)


async def _read_last_cut(store: Store, chain: str, keys: Sequence[bytes] | None) -> Cut | None:
    """The cut that reaches furthest, of those that were made with one of the keys, or of all where they are not here."""
    cuts = reversed(await read_cuts(store, chain))
    return next((cut for cut in cuts if keys is None or _made_with(cut, keys)), None)


def _made_with(cut: Cut, keys: Sequence[bytes]) -> bool:
    return any(cut.genuine(key) for key in keys)


async def _read_rows(store: Store, chain: str) -> AsyncIterator[Row]:
    sql = f"{SELECT} WHERE chain = ? AND seq > ? ORDER BY seq LIMIT ?"
    seq = LOWEST
    while page := await store.read(sql, (chain, seq, PAGE)):
        rows = [Row(*values) for values in page]
        for row in rows:
            yield row
        seq = rows[-1].seq


def _forged(seal: Seal) -> Problem:
    text = f"the seal of row {seal.seq} was not made with this key: it is forged, or the key was replaced"
    return Problem(seal.chain, seal.seq, "forged seal", text)


def _forged_cut(cut: Cut) -> Problem:
    text = f"the cut up to row {cut.seq} was not made with this key: it is forged, or the key was replaced"
    return Problem(cut.chain, cut.seq, "forged seal", text)


def _unreadable(chain: str, heads: Heads) -> Problem:
    text = f"{heads.path} was not made with this key: it is forged or damaged, or the key was replaced"
    return Problem(chain, 0, "forged seal", text)


def _gone(chain: str, at: float, heads: Heads, has_rows: bool) -> Problem:
    """What a mark says that nothing else says any more."""
    since = datetime.fromtimestamp(at, UTC).isoformat(" ", "seconds")
    if has_rows:
        text = f"{heads.path} is missing, which is there since {since}: rows may have been cut off the end"
    else:
        text = (
            f"the record was begun on {since}, and now all its rows, its seals and {heads.path} are missing"
        )
    return Problem(chain, 1, "cut", text)


class _Walk:
    """One pass over a chain. After a bad row it goes on from what is stored, to name only the guilty ones."""

    def __init__(self, chain: str, sealed: dict[int, str], known: dict[int, str]) -> None:
        self.sealed = sealed
        self._known = known
        self.rows = 0
        self.seq = 0
        self._chain = chain
        self._before: bytes | None = GENESIS
        self.cut: KnownCut | None = None

    def skip(self, cut: Cut | None) -> None:
        """Go on behind a cut, unless the walk is past it."""
        if cut is None or cut.seq <= self.seq:
            return
        self.cut = KnownCut(cut.chain, cut.seq, cut.at, cut.made_by)
        self.seq, self._before = cut.seq, _digest(cut.hash)
        self.sealed = {seq: hash_ for seq, hash_ in self.sealed.items() if seq > cut.seq}

    def misses(self, row: Row) -> bool:
        """Whether there is a gap before this row."""
        return _numbered(row.seq) and row.seq > self.seq + 1

    def check(self, row: Row) -> Iterator[Problem]:
        self.rows += 1
        if not _numbered(row.seq):
            yield self._problem(self.seq, "changed", f"after row {self.seq} one was added that has no number")
            return
        if row.seq < 1:
            yield self._problem(row.seq, "changed", f"row {row.seq} was added before the first")
            return
        if self.cut is not None and row.seq <= self.cut.seq:
            yield self._problem(row.seq, "changed", f"row {row.seq} was added before the cut")
            return
        if row.seq != self.seq + 1:
            yield self._problem(self.seq + 1, "removed", f"{_span(self.seq + 1, row.seq - 1)} removed")
            self._before = None
        if self._before is not None and link(self._before, row.chain, row.seq, row.content).hex() != row.hash:
            yield self._problem(row.seq, "changed", f"row {row.seq} was changed or moved")
        if self.sealed.get(row.seq, row.hash) != row.hash:
            text = f"row {row.seq} is not the one that was sealed: the record was rewritten up to here"
            yield self._problem(row.seq, "rewritten", text)
        elif self._known.get(row.seq, row.hash) != row.hash:
            text = f"row {row.seq} is not the one that the gateway wrote: the record was rewritten up to here"
            yield self._problem(row.seq, "rewritten", text)
        self.seq = row.seq
        self._before = _digest(row.hash)

    def end(self) -> Iterator[Problem]:
        sealed = max(self.sealed, default=0)
        latest = max(sealed, *self._known, 0)
        if latest > self.seq:
            why = "although sealed" if sealed == latest else "together with the seals, if there were any"
            text = f"{_span(self.seq + 1, latest)} cut off the end, {why}"
            yield self._problem(self.seq + 1, "cut", text)

    def _problem(self, seq: int, kind: TamperKind, text: str) -> Problem:
        return Problem(self._chain, seq, kind, text)


def _numbered(seq: object) -> bool:
    return isinstance(seq, int)


def _digest(stored: str) -> bytes | None:
    """The stored hash as bytes; None where somebody put something else there."""
    try:
        return bytes.fromhex(stored)
    except (ValueError, TypeError):
        return None


def _span(first: int, last: int) -> str:
    return f"row {first} was" if first == last else f"rows {first} to {last} were"

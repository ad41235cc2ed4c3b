"""Units into commits: the one thread that writes, with one commit for everybody who is there.

The event loop appends units to a queue and calls the writer when it has no more to add (`Cohort`). The writer
takes what is there, runs it in one transaction, commits (which fsyncs) and tells all waiters in one call into the
loop. A unit without a waiter rides along with the next commit, or with the tick.

It is one thread because the record is one chain: each row holds the hash of the row before, so two writers would make
two ends of it. Nothing is told before the commit has returned, or a crash could take back what a caller relies on.
"""

import asyncio
import logging
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import chain as flatten
from itertools import groupby, repeat
from queue import Empty, SimpleQueue

import msgspec

from agent_gate.errors import DependencyUnavailable
from agent_gate.store.chain import Chain
from agent_gate.store.cohort import Cohort
from agent_gate.store.engine import Engine, Fault, Run
from agent_gate.store.statement import Conflict, Head, InDoubt, Param, RowListener, Statement

log = logging.getLogger(__name__)

TICK = 0.05
RETRY = 0.25
RETRY_AFTER = 5.0
BATCH = 512
PORTION = 64
COLLISIONS = 5
DOUBT_SECONDS = 4.0
"""How long after a commit was sent those wait whose commit is in doubt."""
ONE = [1]
PLAIN_INSERT = re.compile(r"(INSERT\s+INTO\s.*\sVALUES\s*)(\([?,\s]+\))\s*", re.IGNORECASE | re.DOTALL)
PROBE = Statement(
    "INSERT INTO kv (name, value) VALUES ('probe', 'ok') ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


class Unit(msgspec.Struct, eq=False):
    """Statements that take effect together. Without a `future` nobody waits for it."""

    statements: tuple[Statement, ...]
    future: "asyncio.Future[list[int]] | None" = None
    counts: list[int] = []
    error: Exception | None = None


@lru_cache(maxsize=512)
def repeated(sql: str, rows: int) -> str | None:
    """A plain `INSERT … VALUES (?, …)` for several rows; None where the statement is something else."""
    match = PLAIN_INSERT.fullmatch(sql)
    return match[1] + ", ".join([match[2]] * rows) if match else None


def portions(count: int) -> Iterator[int]:
    """`count` in portions that each have their own prepared statement."""
    yield from repeat(PORTION, count // PORTION)
    if count % PORTION:
        yield count % PORTION


def shared_insert(unit: Unit) -> str | None:
    """The SQL by which a unit can join its neighbours in one statement; None where it stands alone."""
    if len(unit.statements) != 1 or unit.statements[0].expect is not None:
        return None
    sql = unit.statements[0].sql
    return sql if repeated(sql, 1) else None


def alike(units: list[Unit], sql: str) -> bool:
    """Whether each of them is that one INSERT."""
    for unit in units:
        statements = unit.statements
        if len(statements) != 1 or statements[0].sql is not sql or statements[0].expect is not None:
            return False
    return True


def comes_within(wake: "SimpleQueue[None]", seconds: float) -> bool:
    """Whether the writer is called in time.

    Before Python 3.13 a `get` with a timeout, of a queue that was emptied just before, waits for ever where its thread
    gets no CPU for that long at its beginning: it goes on with a negative rest. One that does not wait keeps it from that.
    """
    try:
        wake.get(block=False)
    except Empty:
        try:
            wake.get(timeout=seconds)
        except Empty:
            return False
    return True


def tell(units: list[Unit]) -> None:
    """Resolve the waiters of `units`; runs on the event loop."""
    for unit in units:
        future = unit.future
        if future is None or future.done():
            continue
        if unit.error is None:
            future.set_result(unit.counts)
        else:
            future.set_exception(unit.error)


class Writer:
    """Owns the engine's write connection. `put` is called on the loop, everything private on the thread."""

    def __init__(self, engine: Engine, chain: str) -> None:
        self._engine = engine
        self._chain = Chain(chain, engine.head(chain))
        self.head = self._chain.head
        self.fault: Fault | None = None
        self.listeners: list[RowListener] = []
        self._appended: list[tuple[Param, ...]] = []
        self._queue: deque[Unit] = deque()
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._cohort = Cohort(self._queue, partial(self._wake.put, None))
        self._committing: list[Unit] = []
        self._sent_at = 0.0
        self._doubtful: list[Unit] = []
        """Those who wait for a commit that is in doubt."""
        self.hurried = False
        self._asleep = self._closing = self._told_them = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def put(self, unit: Unit) -> None:
        """Queue a unit. One with a waiter calls the writer soon; one without does only if it is fast asleep."""
        self._queue.append(unit)
        if unit.future is not None:
            self._cohort.join(unit.future.get_loop())
        elif self._asleep:
            self._asleep = False
            self._wake.put(None)

    @property
    def backlog(self) -> int:
        """How many units wait to be taken."""
        return len(self._queue)

    def stop(self) -> None:
        """Write what is queued, once, then end the thread; blocks until that is done."""
        self._closing = True
        self._wake.put(None)
        self._thread.join()

    def _run(self) -> None:
        while not (self._closing and not self._queue):
            called = self._closing or self._nap(RETRY if self.fault else TICK)
            self._told_them = False
            self._write_all()
            if called and not self._told_them:
                self._tell([])
            if self._closing and self.fault is not None:
                return self._abandon()
        return None

    def _nap(self, seconds: float) -> bool:
        """Return when the writer is called, or when the tick is due and there is something to write; whether it was called."""
        if comes_within(self._wake, seconds):
            return True
        self._asleep = True
        # A unit put before this line is seen here; one put after it sends a token.
        called = not self._queue
        if called:
            self._wake.get()
        self._asleep = False
        return called

    def _write_all(self) -> None:
        """Write what is queued. What comes meanwhile waits for the next call or tick, unless it is much."""
        while batch := self._take():
            try:
                self._settle(batch)
            except Exception as error:
                log.exception("The store's writer failed")
                self._refuse(batch, internal(error))
            if self.fault is not None or not (self._closing or len(self._queue) >= BATCH):
                return

    def _take(self) -> list[Unit]:
        queue = self._queue
        batch = [queue.popleft() for _ in range(min(len(queue), BATCH))]
        self._cohort.taken += sum(unit.future is not None for unit in batch)
        return batch

    def _settle(self, batch: list[Unit], tries: int = COLLISIONS) -> None:
        """Commit a batch and tell its waiters, or refuse it as a whole. One that stood in another gateway's way was
        rolled back whole, and is tried again."""
        if self.fault is not None and self.fault.broken:
            return self._refuse(batch, self.fault)
        try:
            if not self._at_once(batch):
                batch = self._begin(batch)
                for sql, units in groupby(batch, shared_insert):
                    self._run_group(sql, list(units))
                self._committing, self._sent_at = batch, time.monotonic()
                self._engine.commit()
        except self._engine.errors as error:
            if tries and self._engine.collided(error):
                self._engine.rollback()
                self._unlink(self.head)
                return self._settle(batch, tries - 1)
            return self._refuse(batch, self._engine.fault(error) or Fault(str(error), broken=True))
        self.head, self.fault = self._chain.head, None
        self._deliver(batch)
        return self._keep_up()

    def _begin(self, batch: list[Unit]) -> list[Unit]:
        return self._reread(batch) if self._engine.begin() else batch

    def _at_once(self, batch: list[Unit]) -> bool:
        """Write and commit a batch of like rows without a word more than their insert; False where that does not do.

        Every statement more costs the loop's thread two changes of the interpreter lock, and a round trip where the
        database is a server.
        """
        engine = self._engine
        sql = shared_insert(batch[0]) if len(batch) <= PORTION * engine.alone else None
        if sql is None or not alike(batch, sql):
            return False
        if not engine.stands_alone(chained=batch[0].statements[0].chained):
            return False
        self._committing, self._sent_at = batch, time.monotonic()
        try:
            written = engine.commit_alone(list(self._inserts(sql, batch)), self._chain.head)
        except Exception as error:
            if engine.fault(error) is not None:
                raise
            written = False
        if not written:
            self._unlink(self.head)
            return False
        for unit in batch:
            unit.counts = ONE
        return True

    def _unlink(self, head: Head) -> None:
        """Take the chain back to `head`, because the rows after it were not written."""
        undone = self._chain.head.seq - head.seq
        del self._appended[max(0, len(self._appended) - undone) :]
        self._chain.reset(head)

    def _reread(self, batch: list[Unit]) -> list[Unit]:
        """On a new connection: where the chain stands, and what is left to do of `batch`."""
        self.head = self._engine.head(self._chain.name)
        self._chain.reset(self.head)
        committed = self._committing if self._engine.settle_doubt() else []
        self._end_doubt(landed=bool(committed))
        landed = {id(unit) for unit in committed}
        return [unit for unit in batch if id(unit) not in landed]

    def _end_doubt(self, *, landed: bool) -> None:
        """Tell those who waited for a commit in doubt what became of it."""
        doubtful, self._doubtful = self._doubtful, []
        if not landed:
            kind = InDoubt if self._engine.in_doubt else DependencyUnavailable
            for unit in doubtful:
                unit.error = refusal(self.fault or Fault("the connection was lost"), kind)
        self._deliver(doubtful)

    def _keep_up(self) -> None:
        """What follows a commit. A fault in it ends the writing, but who was told that a row is durable was told so."""
        appended, self._appended = self._appended, []
        try:
            for listener in self.listeners:
                listener(self.head, appended)
            self._engine.maintain()
        except self._engine.errors as error:
            self.fault = Fault(str(error), broken=True)
            log.error("The record can no longer be written: %s", error)
        except Exception as error:
            self.fault = internal(error)
            log.exception("The store's writer failed")

    def _run_group(self, sql: str | None, units: list[Unit]) -> None:
        """Run units that share one INSERT together; if that fails, one by one to find the guilty one."""
        if sql is None or len(units) == 1 or self._attempt(lambda: self._insert(sql, units)) is not None:
            for unit in units:
                unit.error = self._attempt(lambda unit=unit: self._run_unit(unit))  # type: ignore[misc]

    def _attempt(self, work: Callable[[], None]) -> Exception | None:
        """Run `work` in a savepoint. Returns what is wrong with it, raises what is wrong with the store."""
        before = self._chain.head
        self._engine.set_savepoint()
        try:
            work()
        except Exception as error:
            if self._engine.fault(error) is not None:
                raise
            self._engine.undo()
            self._unlink(before)
            return Conflict(str(error)) if self._engine.conflict(error) else error
        self._engine.release()
        return None

    def _insert(self, sql: str, units: list[Unit]) -> None:
        for run in self._inserts(sql, units):
            self._engine.execute(*run)
        for unit in units:
            unit.counts = ONE

    def _inserts(self, sql: str, units: list[Unit]) -> Iterator[Run]:
        """The rows in few statements, not executemany: that gives up and wins back the interpreter lock for every row."""
        start = 0
        for size in portions(len(units)):
            rows = self._complete([unit.statements[0] for unit in units[start : start + size]])
            yield repeated(sql, size) or sql, tuple(flatten.from_iterable(rows))
            start += size

    def _run_unit(self, unit: Unit) -> None:
        unit.counts = []
        for statement in unit.statements:
            [params] = self._complete([statement])
            count = self._engine.execute(statement.sql, params)
            if statement.expect is not None and count != statement.expect:
                raise Conflict(f"{count} rows changed where {statement.expect} should have: {statement.sql}")
            unit.counts.append(count)

    def _complete(self, statements: list[Statement]) -> list[tuple[Param, ...]]:
        """The parameters of statements with the same SQL, which are all chained or none of them."""
        rows = [statement.params for statement in statements]
        if not statements[0].chained:
            return rows
        rows = self._chain.extend(rows)
        self._appended += rows
        return rows

    def _deliver(self, batch: list[Unit]) -> None:
        """Tell all waiters with one call into their loop."""
        for unit in batch:
            if unit.error is not None and unit.future is None:
                log.warning("A row that nobody waited for was not written: %s", unit.error)
        waited = [unit for unit in batch if unit.future is not None]
        if waited:
            self._tell(waited)

    def _tell(self, waited: list[Unit]) -> None:
        """Let the loop know that the writer came back, with what became of those who waited."""
        loop, self._told_them = self._cohort.loop, True
        try:
            if loop is not None:
                loop.call_soon_threadsafe(self._came_back, waited)
        except RuntimeError:
            log.debug("The event loop ended before its rows were committed")

    def _came_back(self, waited: list[Unit]) -> None:
        tell(waited)
        self._cohort.came_back()

    def _refuse(self, batch: list[Unit], fault: Fault) -> None:
        """Undo the batch, refuse those who wait, keep the rest for the next try. Whose commit is in doubt waits on."""
        self._engine.rollback()
        self._unlink(self.head)
        if self.fault != fault:
            log.error("The record cannot be written: %s", fault.reason)
        self.fault = fault
        # Whoever queued up behind a lock has waited long enough.
        batch = batch + self._take()
        kept = [unit for unit in batch if unit.future is None] or [Unit((PROBE,))]
        for unit in kept:
            unit.error = None
        self._queue.extendleft(reversed(kept))
        doubtful = {id(unit) for unit in self._committing} if self._engine.in_doubt else set()
        waited = [unit for unit in batch if unit.future is not None]
        self._doubtful += [unit for unit in waited if id(unit) in doubtful]
        refused = [unit for unit in waited if id(unit) not in doubtful]
        for unit in refused:
            unit.error = refusal(fault)
        self._deliver(refused)
        if fault.broken or self.hurried or time.monotonic() - self._sent_at > DOUBT_SECONDS:
            self._end_doubt(landed=False)

    def _abandon(self) -> None:
        lost = sum(PROBE not in unit.statements for unit in self._queue)
        waited = [unit for unit in self._queue if unit.future is not None]
        for unit in waited:
            unit.error = refusal(self.fault or Fault("it is closed"))
        self._deliver(waited)
        self._end_doubt(landed=False)
        if lost:
            log.error("%d rows that nobody waited for could not be written before the end", lost)


def internal(error: Exception) -> Fault:
    return Fault(f"internal error ({type(error).__name__})", broken=True)


def refusal(fault: Fault, kind: type[DependencyUnavailable] = DependencyUnavailable) -> DependencyUnavailable:
    return kind(
        f"The record cannot be written: {fault.reason}.", retry_after=None if fault.broken else RETRY_AFTER
    )

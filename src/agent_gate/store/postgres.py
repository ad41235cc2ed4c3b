"""PostgreSQL as an `Engine`: one writing session per chain, guarded by an advisory lock, and a few readers.

A lost connection is replaced. Each commit leaves a token in the same transaction, so that a commit whose
answer was lost can be told apart from one that never happened, and nothing is done twice. Rows of the chain need no
token: the last of them says whether they are there. So they travel alone, in one message and its answer.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.generators import fetch_many, send
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from agent_gate.errors import ConfigError, InvalidArgs
from agent_gate.store.engine import Fault, Run
from agent_gate.store.migrate import migrate
from agent_gate.store.statement import Head, Param, Record

FIRST_CONNECT_TIMEOUT = 5
CONNECT_TIMEOUT = 3
UNHEARD_MS = 2000
"""How long what was sent may stay without the network's own receipt: a line that is cut is noticed, a slow server is not cut."""
CLAIM_TIMEOUT_MS = 1000
LOCK_TIMEOUT_MS = 5000
IDLE_MS = 4000
"""After how long the server ends a transaction of a gateway that was cut off in it: others may wait for its rows."""
ANSWER_TIMEOUT = 10.0
ALIVE: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": UNHEARD_MS,
}
SESSION = f"SET synchronous_commit = on; SET lock_timeout = {CLAIM_TIMEOUT_MS}; SET idle_in_transaction_session_timeout = {IDLE_MS}"
NOTE_COMMIT = """INSERT INTO kv (name, value) VALUES (%s, %s)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
REWRITTEN = ("approvals", "grants", "results")
HOLDER = """SELECT pid, application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND granted AND ((classid::bigint << 32) | objid::bigint) = %s"""
NOW = "extract(epoch FROM clock_timestamp())::double precision"
FIRST = f"SELECT host, pid, started_at, ends_at <= {NOW} FROM gateways WHERE id = %s"
CHANNEL = "agent_gate"
LOST = (psycopg.OperationalError, errors.IdleInTransactionSessionTimeout)
"""What a session that is gone may say last."""


@lru_cache(maxsize=512)
def translated(sql: str) -> str:
    """`?` placeholders into the driver's `%s`, leaving quoted text alone."""
    parts = sql.replace("%", "%%").split("'")
    parts[::2] = [part.replace("?", "%s") for part in parts[::2]]
    return "'".join(parts)


@lru_cache(maxsize=512)
def numbered(sql: str) -> str:
    """`?` placeholders of an INSERT, which quotes nothing, into the server's own `$1`, `$2`, …"""
    first, *rest = sql.split("?")
    return first + "".join(f"${at}{part}" for at, part in enumerate(rest, 1))


def wired(params: Sequence[Param]) -> tuple[list[bytes | None], list[int]]:
    """Parameters as they travel: numbers in digits, texts and bytes as they are, so that a NUL is seen and refused."""
    values: list[bytes | None] = []
    formats: list[int] = []
    for param in params:
        if isinstance(param, str):
            values.append(param.encode())
            formats.append(1)
        elif param is None or isinstance(param, bytes):
            values.append(param)
            formats.append(1)
        else:
            values.append(repr(param).encode())
            formats.append(0)
    return values, formats


def lock_key(name: str) -> int:
    """A 63-bit advisory lock number for a name."""
    return int.from_bytes(sha256(f"agent-gate:{name}".encode()).digest()[:8], "big") >> 1


class PostgresConnection(psycopg.Connection[Record]):
    """A connection that gives up on a server which no longer answers."""

    @cached_property
    def _names(self) -> dict[str, bytes]:
        """The statements that `run_all` prepared on this session."""
        return {}

    @cached_property
    def _numbers(self) -> Iterator[int]:
        return count()

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, timeout or ANSWER_TIMEOUT)

    def run_all(self, statements: Sequence[Run]) -> None:
        """Run statements as one transaction with one round trip, each prepared at its first use.

        The driver's own cursor looks at every parameter of every row three times; rows have hundreds.
        """
        messages = [(self._name_of(sql), *wired(params)) for sql, params in statements]
        if len(messages) == 1:
            name, values, formats = messages[0]
            self.pgconn.send_query_prepared(name, values, formats)
            self.wait(self._answers(1))
            return
        self.pgconn.enter_pipeline_mode()
        for name, values, formats in messages:
            self.pgconn.send_query_prepared(name, values, formats)
        self.pgconn.pipeline_sync()
        try:
            self.wait(self._answers(len(messages) + 1))
        finally:
            if self.pgconn.transaction_status == TransactionStatus.IDLE:
                self.pgconn.exit_pipeline_mode()
            else:
                self.close()

    def _name_of(self, sql: str) -> bytes:
        """The name of a statement on this session."""
        if (name := self._names.get(sql)) is None:
            name = b"rows_%d" % next(self._numbers)
            self.pgconn.send_prepare(name, numbered(sql).encode())
            self.wait(self._answers(1))
            self._names[sql] = name
        return name

    def _answers(self, number: int) -> PQGen[None]:
        """Send what is queued and read as many answers; raises the first error among them, when all are read."""
        yield from send(self.pgconn)
        found: list[PGresult] = []
        for _ in range(number):
            found += yield from fetch_many(self.pgconn)
        for result in found:
            if result.status == ExecStatus.FATAL_ERROR:
                error = psycopg.errors.error_from_result(result, encoding="utf-8")
                if isinstance(error, errors.InvalidSqlStatementName):
                    self._names.clear()
                raise error


class PostgresEngine:
    name, ahead, shared = "postgres", 1, True
    now = NOW
    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    file: Path | None = None
    alone = 8

    def __init__(self, url: str, chain: str) -> None:
        self._url = url
        self._chain = chain
        self._readers: SimpleQueue[PostgresConnection] = SimpleQueue()
        self._lock = lock_key(f"chain:{chain}")
        self._note = f"commit:{chain}"
        self._renewed = False
        self._doubt: str | Head | None = None
        """What the last commit left behind, if it took effect: its token, or the end of the chain."""

    def open(self) -> None:
        try:
            self._writer = self._connect(FIRST_CONNECT_TIMEOUT)
        except psycopg.Error as error:
            raise ConfigError(f"The PostgreSQL store cannot be reached: {first_line(error)}.") from error
        try:
            self._take_chain()
            self._migrate()
        except psycopg.Error as error:
            self.close()
            raise ConfigError(f"The PostgreSQL store cannot be prepared: {first_line(error)}.") from error
        except ConfigError:
            self.close()
            raise

    def _take_chain(self) -> None:
        """Where a gateway of this id is there, it is named. The session of one whose lease has ended, as that of a machine
        that was cut off, is ended first."""
        try:
            self._claim()
        except errors.LockNotAvailable:
            holder = self._writer.execute(HOLDER, (self._lock,)).fetchone()
            first = self._first()
            if holder is None or first is None or not first[3]:
                raise self._taken(holder, first) from None
            self._writer.execute("SELECT pg_terminate_backend(%s)", (holder[0],))
            self._claim()

    def _first(self) -> Record | None:
        """What is known of the gateway that had this id before: host, pid, since when, whether its lease has ended."""
        try:
            return self._writer.execute(FIRST, (self._chain,)).fetchone()
        except errors.UndefinedTable:
            return None

    def _taken(self, holder: Record | None, first: Record | None) -> ConfigError:
        who = holder[1] if holder else "unknown"
        if first is not None:
            since = datetime.fromtimestamp(first[2], UTC).isoformat(sep=" ", timespec="seconds")
            who = f"pid {first[1]} on {first[0]}, since {since}"
        return ConfigError(
            f"Another gateway writes as {self._chain!r} to this PostgreSQL store ({who}). Stop that one first, or give "
            "this one another `gateway: {id: …}`."
        )

    def _migrate(self) -> None:
        """One gateway at a time, where several share the database."""
        turn = (lock_key("migrations"),)
        self._writer.execute("SELECT pg_advisory_lock(%s)", turn)
        migrate(self, lambda sql: self._writer.execute(translated(sql)).fetchall())
        self._writer.execute("SELECT pg_advisory_unlock(%s)", turn)

    def _connect(self, timeout: int = CONNECT_TIMEOUT) -> PostgresConnection:
        session = PostgresConnection.connect(
            self._url,
            autocommit=True,
            # The driver would drop what it prepared after a rollback, and what `run_all` prepared with it.
            prepare_threshold=None,
            connect_timeout=timeout,
            application_name=f"agent-gate {self._chain} pid {os.getpid()}",
            **ALIVE,
        )
        session.execute(SESSION)
        session.execute("SELECT set_config('agent_gate.id', %s, false)", (self._chain,))
        return session

    async def hear(self, wake: Callable[[], None]) -> None:
        session = await psycopg.AsyncConnection.connect(
            self._url,
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT,
            application_name=f"agent-gate {self._chain} notices",
            **ALIVE,
        )
        async with session:
            await session.execute(f"LISTEN {CHANNEL}")
            wake()
            async for _ in session.notifies():
                wake()

    def _claim(self) -> None:
        """Take the chain's lock; waits a moment for the end of a session that was cut off."""
        self._writer.execute("SELECT pg_advisory_lock(%s)", (self._lock,))
        self._writer.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")

    def head(self, chain: str) -> Head:
        found = self._writer.execute(
            "SELECT seq, hash FROM record WHERE chain = %s ORDER BY seq DESC LIMIT 1", (chain,)
        ).fetchone()
        return Head(*found) if found else Head(0, "")

    def begin(self) -> bool:
        if not self._writer.closed:
            try:
                self._writer.execute("BEGIN")
                renewed, self._renewed = self._renewed, False
                return renewed or self.in_doubt
            except LOST as error:
                self._drop_if_lost(error)
                if not self._writer.closed:
                    raise
        self._reconnect()
        self._writer.execute("BEGIN")
        self._renewed = False
        return True

    def _reconnect(self) -> None:
        self._writer = self._connect()
        try:
            self._claim()
        except psycopg.Error:
            self._writer.close()
            raise
        self._renewed = True

    def _drop_if_lost(self, error: Exception | None = None) -> None:
        """Close a connection that is broken, that still waits for a server which did not answer, or whose last word that
        was."""
        ended = isinstance(error, errors.IdleInTransactionSessionTimeout)
        if ended or self._writer.closed or self._writer.info.transaction_status == TransactionStatus.ACTIVE:
            self._writer.close()

    @property
    def in_doubt(self) -> bool:
        return self._doubt is not None

    def settle_doubt(self) -> bool:
        landed = self._doubt is not None and self._took_effect(self._doubt)
        self._doubt = None
        return landed

    def _took_effect(self, doubt: str | Head) -> bool:
        if isinstance(doubt, str):
            return doubt == self._last_commit()
        sql = "SELECT hash FROM record WHERE chain = %s AND seq = %s"
        return self._writer.execute(sql, (self._chain, doubt.seq)).fetchone() == (doubt.hash,)

    def stands_alone(self, *, chained: bool) -> bool:
        return chained and not self.in_doubt and not self._renewed and not self._writer.closed

    def commit_alone(self, statements: Sequence[Run], head: Head) -> bool:
        try:
            self._writer.run_all(statements)
        except LOST as error:
            self._drop_if_lost(error)
            if not self._writer.closed:
                raise
            self._doubt = head
            self._reconnect()
            return self.settle_doubt()
        return True

    def _last_commit(self) -> str | None:
        found = self._writer.execute("SELECT value FROM kv WHERE name = %s", (self._note,)).fetchone()
        return found[0] if found else None

    def commit(self) -> None:
        token = uuid4().hex
        self._writer.execute(NOTE_COMMIT, (self._note, token))
        try:
            self._writer.execute("COMMIT")
        except LOST as error:
            self._drop_if_lost(error)
            if not self._writer.closed:
                raise
            self._doubt = token
            self._reconnect()
            if not self.settle_doubt():
                raise

    def rollback(self) -> None:
        self._drop_if_lost()
        try:
            if not self._writer.closed:
                self._writer.execute("ROLLBACK")
        except psycopg.Error:
            self._writer.close()

    def set_savepoint(self) -> None:
        self._writer.execute("SAVEPOINT unit")

    def release(self) -> None:
        self._writer.execute("RELEASE unit")

    def undo(self) -> None:
        self._writer.execute("ROLLBACK TO unit; RELEASE unit")

    def execute(self, sql: str, params: tuple[Param, ...]) -> int:
        try:
            return self._writer.execute(translated(sql), params).rowcount
        except psycopg.DataError as error:
            raise unstorable(error, params) from error

    def fault(self, error: Exception) -> Fault | None:
        if isinstance(error, errors.LockNotAvailable):
            return Fault("the PostgreSQL store is locked by another session; end that session")
        if isinstance(error, errors.DiskFull):
            return Fault("disk full on the PostgreSQL server; free some space there")
        if isinstance(error, errors.ProgramLimitExceeded):
            return None
        if isinstance(error, (*LOST, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)):
            return Fault(f"the PostgreSQL store does not answer as it should ({first_line(error)})")
        return None

    def conflict(self, error: Exception) -> bool:
        return isinstance(error, errors.UniqueViolation)

    def collided(self, error: Exception) -> bool:
        return isinstance(error, errors.DeadlockDetected | errors.SerializationFailure)

    def maintain(self) -> None:
        """PostgreSQL looks after itself."""

    def rewrite(self) -> None:
        """The record is never changed, so it needs no rewriting."""
        session = self._connect()
        try:
            for table in REWRITTEN:
                session.execute(f"VACUUM FULL {table}")
        finally:
            session.close()

    def read(self, sql: str, params: tuple[Param, ...]) -> list[Record]:
        try:
            return self._read_once(sql, params)
        except psycopg.OperationalError:
            while not self._readers.empty():
                self._readers.get_nowait().close()
            return self._read_once(sql, params)

    def _read_once(self, sql: str, params: tuple[Param, ...]) -> list[Record]:
        try:
            session = self._readers.get_nowait()
        except Empty:
            session = self._connect()
        try:
            rows = session.execute(translated(sql), params).fetchall()
        except psycopg.OperationalError:
            session.close()
            raise
        except psycopg.DataError as error:
            self._readers.put(session)
            raise unstorable(error, params) from error
        except BaseException:
            self._readers.put(session)
            raise
        self._readers.put(session)
        return rows

    def close(self) -> None:
        while not self._readers.empty():
            self._readers.get_nowait().close()
        self._writer.close()


def unstorable(error: psycopg.DataError, params: tuple[Param, ...]) -> Exception:
    """What to say of a text that PostgreSQL cannot hold, which only those who sent it can mend."""
    if any(isinstance(param, str) and "\0" in param for param in params):
        return InvalidArgs("A name, key or id contains a NUL character. Send it without")
    return error


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

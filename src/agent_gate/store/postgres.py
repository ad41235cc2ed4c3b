"""PostgreSQL as an `Engine`: one writing session per chain, guarded by an advisory lock, and a few readers.

A lost connection is replaced. Each commit leaves a token in the same transaction, so that a commit whose
answer was lost can be told apart from one that never happened, and nothing is done twice.
"""

import os
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from agent_gate.errors import ConfigError, InvalidArgs
from agent_gate.store.engine import Fault
from agent_gate.store.migrate import migrate
from agent_gate.store.statement import Head, Param, Record

CONNECT_TIMEOUT = 5
CLAIM_TIMEOUT_MS = 1000
LOCK_TIMEOUT_MS = 5000
ANSWER_TIMEOUT = 10.0
SESSION = f"SET synchronous_commit = on; SET lock_timeout = {CLAIM_TIMEOUT_MS}"
NOTE_COMMIT = """INSERT INTO kv (name, value) VALUES (%s, %s)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
REWRITTEN = ("approvals", "grants", "results")
HOLDER = """SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND granted AND ((classid::bigint << 32) | objid::bigint) = %s"""


@lru_cache(maxsize=512)
def translated(sql: str) -> str:
    """`?` placeholders into the driver's `%s`, leaving quoted text alone."""
    parts = sql.replace("%", "%%").split("'")
    parts[::2] = [part.replace("?", "%s") for part in parts[::2]]
    return "'".join(parts)


def lock_key(name: str) -> int:
    """A 63-bit advisory lock number for a name."""
    return int.from_bytes(sha256(f"agent-gate:{name}".encode()).digest()[:8], "big") >> 1


class PostgresConnection(psycopg.Connection[Record]):
    """A connection that gives up on a server which no longer answers."""

    def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, timeout or ANSWER_TIMEOUT)


class PostgresEngine:
    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    file: Path | None = None
    commits_alone = False

    def __init__(self, url: str, chain: str) -> None:
        self._url = url
        self._chain = chain
        self._readers: SimpleQueue[PostgresConnection] = SimpleQueue()
        self._lock = lock_key(f"chain:{chain}")
        self._note = f"commit:{chain}"
        self._doubt: str | None = None

    def open(self) -> None:
        try:
            self._writer = self._connect()
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
        try:
            self._claim()
        except errors.LockNotAvailable:
            holder = self._writer.execute(HOLDER, (self._lock,)).fetchone()
            raise ConfigError(
                f"Another gateway writes as {self._chain!r} to this PostgreSQL store "
                f"({holder[0] if holder else 'unknown'}). Stop that one first, or give this one another "
                "`gateway: {id: …}`."
            ) from None

    def _migrate(self) -> None:
        """One gateway at a time, where several share the database."""
        turn = (lock_key("migrations"),)
        self._writer.execute("SELECT pg_advisory_lock(%s)", turn)
        migrate(self, lambda sql: self._writer.execute(translated(sql)).fetchall())
        self._writer.execute("SELECT pg_advisory_unlock(%s)", turn)

    def _connect(self) -> PostgresConnection:
        session = PostgresConnection.connect(
            self._url,
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT,
            application_name=f"agent-gate {self._chain} pid {os.getpid()}",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
        )
        session.execute(SESSION)
        return session

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
                return self.in_doubt
            except psycopg.OperationalError:
                self._drop_if_lost()
                if not self._writer.closed:
                    raise
        self._reconnect()
        self._writer.execute("BEGIN")
        return True

    def _reconnect(self) -> None:
        self._writer = self._connect()
        try:
            self._claim()
        except psycopg.Error:
            self._writer.close()
            raise

    def _drop_if_lost(self) -> None:
        """Close a connection that is broken, or that still waits for a server which did not answer."""
        if self._writer.closed or self._writer.info.transaction_status == TransactionStatus.ACTIVE:
            self._writer.close()

    @property
    def in_doubt(self) -> bool:
        return self._doubt is not None

    def landed(self) -> bool:
        landed = self._doubt is not None and self._doubt == self._last_commit()
        self._doubt = None
        return landed

    def _last_commit(self) -> str | None:
        found = self._writer.execute("SELECT value FROM kv WHERE name = %s", (self._note,)).fetchone()
        return found[0] if found else None

    def commit(self) -> None:
        token = uuid4().hex
        self._writer.execute(NOTE_COMMIT, (self._note, token))
        try:
            self._writer.execute("COMMIT")
        except psycopg.OperationalError:
            self._drop_if_lost()
            if not self._writer.closed:
                raise
            self._doubt = token
            self._reconnect()
            if not self.landed():
                raise

    def rollback(self) -> None:
        self._drop_if_lost()
        try:
            if not self._writer.closed:
                self._writer.execute("ROLLBACK")
        except psycopg.Error:
            self._writer.close()

    def savepoint(self) -> None:
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
        if isinstance(
            error, psycopg.OperationalError | psycopg.InterfaceError | errors.ReadOnlySqlTransaction
        ):
            return Fault(f"the PostgreSQL store does not answer as it should ({first_line(error)})")
        return None

    def conflict(self, error: Exception) -> bool:
        return isinstance(error, errors.UniqueViolation)

    def upkeep(self) -> None:
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

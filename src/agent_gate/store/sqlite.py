"""SQLite as an `Engine`: a WAL file that is fsynced on every commit, for one gateway."""

import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from agent_gate.errors import ConfigError
from agent_gate.store.engine import Fault, Run
from agent_gate.store.lock import FileLock
from agent_gate.store.migrate import migrate
from agent_gate.store.statement import Head, Param, Record

log = logging.getLogger(__name__)

BUSY_TIMEOUT = 5.0
CHECKPOINT_COMMITS = 1000
LOOK_COMMITS = 8
PREPARED = 256
CHECKPOINT_BYTES = 4 << 20
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
DAMAGED = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
)
UNIQUE = (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)


class SqliteEngine:
    name, ahead, shared = "sqlite", 0, False
    now = "((julianday('now') - 2440587.5) * 86400.0)"
    errors: tuple[type[Exception], ...] = (sqlite3.Error, MemoryError)
    alone = 1
    in_doubt = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file: Path | None = path.absolute()
        self._wal = f"{path}-wal"
        self._lock = FileLock(path)
        self._readers: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._commits = 0
        self._wal_size = 0

    def open(self) -> None:
        self._make_private_file()
        try:
            self._writer = self._connect()
        except sqlite3.Error as error:
            self._lock.release()
            raise self._unusable(error) from error
        try:
            self._writer.execute("PRAGMA synchronous=FULL")
            # Checkpoints are run by `maintain`, because the automatic ones swallow a failed fsync.
            self._writer.execute("PRAGMA wal_autocheckpoint=0")
            self._writer.execute(f"PRAGMA journal_size_limit={CHECKPOINT_BYTES * 4}")
            migrate(self, lambda sql: self._writer.execute(sql).fetchall())
        except sqlite3.Error as error:
            self.close()
            raise self._unusable(error) from error
        except ConfigError:
            self.close()
            raise

    def _unusable(self, error: sqlite3.Error) -> ConfigError:
        fault = self.fault(error)
        why = str(error) if fault is None or fault.broken else fault.reason
        return ConfigError(f"{self._path} cannot be opened as the gateway's database: {why}.")

    def _make_private_file(self) -> None:
        folder = self._path.parent
        try:
            if not folder.exists():
                folder.mkdir(parents=True, mode=0o700)
            self._lock.take()
            # SQLite gives the -wal and -shm files the mode of the database file.
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.fchmod(file, 0o600)
            os.close(file)
        except OSError as error:
            self._lock.release()
            raise ConfigError(f"The database {self._path} cannot be created: {error.strerror}.") from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=PREPARED,
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA temp_store=MEMORY")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def head(self, chain: str) -> Head:
        found = self._writer.execute(
            "SELECT seq, hash FROM record WHERE chain = ? ORDER BY seq DESC LIMIT 1", (chain,)
        ).fetchone()
        return Head(*found) if found else Head(0, "")

    def begin(self) -> bool:
        self._writer.execute("BEGIN IMMEDIATE")
        return False

    def settle_doubt(self) -> bool:
        return False

    def commit(self) -> None:
        self._writer.execute("COMMIT")

    def stands_alone(self, *, chained: bool) -> bool:  # noqa: ARG002 - a file is never in doubt
        return True

    def commit_alone(self, statements: Sequence[Run], head: Head) -> bool:  # noqa: ARG002
        for sql, params in statements:
            self._writer.execute(sql, params)
        return True

    def rollback(self) -> None:
        try:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        except sqlite3.Error as error:
            log.warning("The rollback failed: %s", error)

    def set_savepoint(self) -> None:
        self._writer.execute("SAVEPOINT unit")

    def release(self) -> None:
        self._writer.execute("RELEASE unit")

    def undo(self) -> None:
        self._writer.execute("ROLLBACK TO unit")
        self._writer.execute("RELEASE unit")

    def execute(self, sql: str, params: tuple[Param, ...]) -> int:
        return self._writer.execute(sql, params).rowcount

    def fault(self, error: Exception) -> Fault | None:
        if isinstance(error, MemoryError):
            return Fault("there is not enough memory")
        code = getattr(error, "sqlite_errorcode", 0) or 0
        # The shared-memory file cannot grow: a full disk that SQLite reports as an I/O error.
        if code == sqlite3.SQLITE_IOERR_SHMSIZE or code & 0xFF == sqlite3.SQLITE_FULL:
            return Fault(f"disk full, or a size limit reached, at {self._path}; free some space there")
        if code & 0xFF in BUSY:
            return Fault(f"{self._path} is locked by another program; close that program")
        if code & 0xFF in DAMAGED:
            reason = f"{error} at {self._path}; check the disk, then start the gateway again"
            return Fault(reason, broken=True)
        return None

    def conflict(self, error: Exception) -> bool:
        return getattr(error, "sqlite_errorcode", None) in UNIQUE

    def collided(self, error: Exception) -> bool:
        """One gateway writes here."""
        del error
        return False

    async def hear(self, wake: Callable[[], None]) -> None:
        """Nobody else changes anything."""

    def maintain(self) -> None:
        """Move the WAL into the database file now and then, away from anybody who waits."""
        self._commits += 1
        if self._commits % LOOK_COMMITS and self._commits < CHECKPOINT_COMMITS:
            return
        size = os.stat(self._wal).st_size  # noqa: PTH116 - a third of Path.stat's price, and often
        self._wal_size = min(self._wal_size, size)
        if self._commits < CHECKPOINT_COMMITS and size - self._wal_size < CHECKPOINT_BYTES:
            return
        self._commits, self._wal_size = 0, size
        try:
            self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:
            fault = self.fault(error)
            if fault is None or fault.broken:
                raise
            log.warning("The checkpoint waits: %s", fault.reason)

    def rewrite(self) -> None:
        connection = self._connect()
        try:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.close()

    def read(self, sql: str, params: tuple[Param, ...]) -> list[Record]:
        try:
            connection = self._readers.get_nowait()
        except Empty:
            connection = self._connect()
            connection.execute("PRAGMA query_only=1")
        try:
            return connection.execute(sql, params).fetchall()
        except sqlite3.OperationalError as error:
            if hasattr(error, "sqlite_errorcode"):
                raise
            return self._read_damaged(connection, sql, params)
        finally:
            self._readers.put(connection)

    def _read_damaged(
        self, connection: sqlite3.Connection, sql: str, params: tuple[Param, ...]
    ) -> list[Record]:
        """Read what holds text that is none, so that one row that was tampered with hides no other."""
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        try:
            return connection.execute(sql, params).fetchall()
        finally:
            connection.text_factory = str

    def close(self) -> None:
        while not self._readers.empty():
            self._readers.get_nowait().close()
        self._writer.close()
        self._lock.release()

"""Numbered files into a schema: each is applied once, in a transaction, and noted in `schema_version`."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from agent_gate.errors import ConfigError
from agent_gate.store.engine import Engine
from agent_gate.store.statement import Record

VERSIONS = """CREATE TABLE IF NOT EXISTS schema_version (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, at DOUBLE PRECISION NOT NULL)"""
NOTE = "INSERT INTO schema_version (version, name, at) VALUES (?, ?, ?)"
FILE = re.compile(r"(\d{4})_(\w+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str

    def statements(self) -> list[str]:
        """The file's statements: comments dropped, each ended by a semicolon at the end of a line."""
        lines = [line for line in self.sql.splitlines() if not line.lstrip().startswith("--")]
        parts = re.split(r";\s*$", "\n".join(lines), flags=re.MULTILINE)
        return [part.strip() for part in parts if part.strip()]


def shipped() -> list[Migration]:
    """The migrations this program brings, in order."""
    folder = files("agent_gate.store.migrations")
    found = ((FILE.fullmatch(entry.name), entry) for entry in folder.iterdir())
    named = [Migration(int(m[1]), m[2], entry.read_text("utf-8")) for m, entry in found if m]
    return sorted(named, key=lambda migration: migration.version)


def migrate(
    engine: Engine,
    read: Callable[[str], list[Record]],
    migrations: list[Migration] | None = None,
) -> None:
    """Bring the database to the newest version. `read` runs a query inside the engine's transaction."""
    wanted = shipped() if migrations is None else migrations
    for migration in wanted:
        _apply(engine, read, migration, newest=wanted[-1].version)


def _apply(engine: Engine, read: Callable[[str], list[Record]], migration: Migration, newest: int) -> None:
    engine.begin()
    try:
        engine.execute(VERSIONS, ())
        current = read("SELECT coalesce(max(version), 0) FROM schema_version")[0][0]
        if current > newest:
            raise ConfigError(
                f"The database has schema version {current}, but this program knows only up to {newest}. "
                "Start the newer program that wrote it, or restore the backup made before the upgrade."
            )
        if current < migration.version:
            for sql in migration.statements():
                engine.execute(sql, ())
            engine.execute(NOTE, (migration.version, migration.name, time.time()))
        engine.commit()
    except BaseException:
        engine.rollback()
        raise

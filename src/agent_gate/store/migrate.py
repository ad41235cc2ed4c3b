"""Numbered files into a schema: each is applied once, in a transaction, and noted in `schema_version`.

A new database gets them all in one, since nobody uses it yet; later ones have one each, which holds up others briefly.
A file of the same name in the folder of an engine adds what only that engine can do. Migrations add and never take away,
so that a program may work beside one that is a migration ahead of it; one that breaks this says so by its name.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from agent_gate.errors import ConfigError
from agent_gate.store.engine import Engine
from agent_gate.store.statement import Record

VERSIONS = """CREATE TABLE IF NOT EXISTS schema_version (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, at DOUBLE PRECISION NOT NULL)"""
NOTE = "INSERT INTO schema_version (version, name, at) VALUES (?, ?, ?)"
FILE = re.compile(r"(\d{4})_(\w+)\.sql")
ENGINES = ("postgres",)
"""Those that have a folder of their own."""
BREAKING = "breaking_"
"""How the name of a migration begins that an earlier program could not work with."""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str
    more: Mapping[str, str] = field(default_factory=dict)
    """What it does beside that, by the engine that does it."""

    def statements(self, engine: str = "") -> list[str]:
        """The statements of the file and of the engine's: comments dropped, each ended by a semicolon at the end of a
        line."""
        text = f"{self.sql}\n{self.more.get(engine, '')}"
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
        parts = re.split(r";\s*$", "\n".join(lines), flags=re.MULTILINE)
        return [part.strip() for part in parts if part.strip()]


def shipped() -> list[Migration]:
    """The migrations this program brings, in order."""
    folder = files("agent_gate.store.migrations")
    found = ((FILE.fullmatch(entry.name), entry) for entry in folder.iterdir())
    named = [
        Migration(int(m[1]), m[2], entry.read_text("utf-8"), added_to(entry.name)) for m, entry in found if m
    ]
    return sorted(named, key=lambda migration: migration.version)


def added_to(name: str) -> Mapping[str, str]:
    """What the folders of engines have beside a file, by engine."""
    beside = ((engine, files("agent_gate.store.migrations") / engine / name) for engine in ENGINES)
    return {engine: file.read_text("utf-8") for engine, file in beside if file.is_file()}


def migrate(
    engine: Engine,
    read: Callable[[str], list[Record]],
    migrations: list[Migration] | None = None,
) -> None:
    """Bring the database to the newest version. `read` runs a query inside the engine's transaction."""
    wanted = shipped() if migrations is None else migrations
    while _apply_next(engine, read, wanted):
        pass


def is_too_new(noted: list[Record], newest: int, ahead: int) -> bool:
    """Whether the migrations noted go further than `ahead` of the newest known one, or one of these breaks things."""
    later = {version: name for version, name in noted if version > newest}
    return max(later, default=newest) > newest + ahead or any(n.startswith(BREAKING) for n in later.values())


def _apply_next(engine: Engine, read: Callable[[str], list[Record]], wanted: list[Migration]) -> bool:
    """Apply what is missing in a new database, else the first of it; whether more is missing."""
    engine.begin()
    try:
        engine.execute(VERSIONS, ())
        noted = read("SELECT version, name FROM schema_version ORDER BY version")
        missing = _missing(noted, wanted, engine.ahead)
        due = missing[:1] if noted else missing
        for migration in due:
            for sql in migration.statements(engine.name):
                engine.execute(sql, ())
            engine.execute(NOTE, (migration.version, migration.name, time.time()))
        engine.commit()
    except BaseException:
        engine.rollback()
        raise
    return len(due) < len(missing)


def _missing(noted: list[Record], wanted: list[Migration], ahead: int) -> list[Migration]:
    current, newest = noted[-1][0] if noted else 0, wanted[-1].version if wanted else 0
    if is_too_new(noted, newest, ahead):
        raise ConfigError(
            f"The database has schema version {current}, but this program knows only up to {newest}. "
            "Start the newer program that wrote it, or restore the backup made before the upgrade."
        )
    return [migration for migration in wanted if migration.version > current]

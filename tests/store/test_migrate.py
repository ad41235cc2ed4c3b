"""Migrations: applied once, whole or not at all, and never backwards."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest

from agent_gate.errors import ConfigError
from agent_gate.store import StoreSettings
from agent_gate.store.migrate import Migration, migrate, shipped
from agent_gate.store.sqlite import SqliteEngine

NEXT = shipped()[-1].version + 1


@pytest.fixture
def engine(settings: StoreSettings) -> Iterator:
    if settings.type == "sqlite":
        assert settings.path is not None
        made = SqliteEngine(settings.path)
    else:
        made = import_module("agent_gate.store.postgres").PostgresEngine(settings.url, settings.chain)
    made.open()
    yield made
    made.close()


def rows(engine, sql: str) -> list:
    return engine._writer.execute(sql).fetchall()


def apply(engine, *more: Migration) -> None:
    migrate(engine, lambda sql: rows(engine, sql), [*shipped(), *more])


def test_the_shipped_migrations_are_numbered_without_a_gap() -> None:
    assert [migration.version for migration in shipped()] == list(range(1, len(shipped()) + 1))


def test_every_migration_is_noted_once_however_often_the_program_starts(engine) -> None:
    added = Migration(NEXT, "added", "CREATE TABLE added (x INTEGER);\nINSERT INTO added (x) VALUES (1);\n")
    for _ in range(2):
        apply(engine, added)
        assert rows(engine, "SELECT x FROM added") == [(1,)]
    noted = rows(engine, "SELECT version, name FROM schema_version ORDER BY version")
    assert noted == [*((m.version, m.name) for m in shipped()), (NEXT, "added")]


def test_a_migration_that_fails_halfway_leaves_nothing_and_can_be_run_again(engine) -> None:
    broken = Migration(NEXT, "half", "CREATE TABLE half (x INTEGER);\nCREATE TABLE half (x INTEGER);\n")
    with pytest.raises(engine.errors):
        apply(engine, broken)
    whole = Migration(NEXT, "half", "-- a comment; with a semicolon\nCREATE TABLE half (x INTEGER);\n")
    apply(engine, whole)
    assert rows(engine, "SELECT count(*) FROM half") == [(0,)]


HALF = "CREATE TABLE half (x INTEGER);\nCREATE TABLE half (x INTEGER);\n"


def test_a_new_database_gets_all_migrations_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [*shipped(), Migration(NEXT, "half", HALF)]
    monkeypatch.setattr("agent_gate.store.migrate.shipped", lambda: broken)
    with pytest.raises(ConfigError, match="half already exists"):
        SqliteEngine(tmp_path / "gate.db").open()
    with closing(sqlite3.connect(tmp_path / "gate.db")) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == []


def test_a_database_in_use_keeps_the_migrations_before_one_that_fails(engine) -> None:
    with pytest.raises(engine.errors):
        apply(engine, *ahead(1), Migration(NEXT + 1, "half", HALF))
    assert rows(engine, "SELECT max(version) FROM schema_version") == [(NEXT,)]


def ahead(count: int, name: str = "future") -> list[Migration]:
    return [
        Migration(NEXT + number, name, f"CREATE TABLE future{number} (x INTEGER);") for number in range(count)
    ]


def test_a_schema_of_a_newer_program_is_refused(engine) -> None:
    newer = ahead(engine.ahead + 1)
    apply(engine, *newer)
    wanted = f"schema version {newer[-1].version}, but this program knows only up to {NEXT - 1}"
    with pytest.raises(ConfigError, match=wanted):
        apply(engine)


def test_where_gateways_share_a_store_one_may_be_a_migration_behind_the_others(engine) -> None:
    apply(engine, *ahead(engine.ahead))
    apply(engine)
    assert engine.ahead == (1 if engine.shared else 0)


def test_a_migration_that_says_it_breaks_things_is_refused_by_an_earlier_program(engine) -> None:
    apply(engine, *ahead(1, "breaking_future"))
    with pytest.raises(ConfigError, match="Start the newer program"):
        apply(engine)

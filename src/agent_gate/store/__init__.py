"""Durability, not concepts: statements in, durable rows out, on SQLite or PostgreSQL.

`open_store(settings)` gives a `Store`; the folders above own their tables and write `Statement`s.
"""

import shlex
import sys
from importlib import import_module

from agent_gate.errors import ConfigError
from agent_gate.store.durable import DurableStore
from agent_gate.store.engine import Engine
from agent_gate.store.sqlite import SqliteEngine
from agent_gate.store.statement import Conflict, Head, Param, Record, Statement, Store, StoreSettings

__all__ = [
    "NO_DRIVER",
    "Conflict",
    "Head",
    "Param",
    "Record",
    "Statement",
    "Store",
    "StoreSettings",
    "open_store",
]


NO_DRIVER = (
    "the driver for PostgreSQL is not installed; "
    f"run: {shlex.quote(sys.executable)} -m pip install 'agent-gate[postgres]'"
)


def open_store(settings: StoreSettings) -> Store:
    """Open the store, bring its schema up to date and take its lock; blocks while it does so."""
    if settings.type == "sqlite" and settings.path is not None:
        return DurableStore(SqliteEngine(settings.path), settings.chain)
    if settings.type == "postgres" and settings.url is not None:
        return DurableStore(_postgres(settings.url, settings.chain), settings.chain)
    raise ConfigError("storage needs `path` with type sqlite, or `url` with type postgres.")


def _postgres(url: str, chain: str) -> Engine:
    try:
        module = import_module("agent_gate.store.postgres")
    except ModuleNotFoundError as error:
        raise ConfigError(f"storage.type: {NO_DRIVER}") from error
    engine: Engine = module.PostgresEngine(url, chain)
    return engine

"""The memory host: what agents want to find again, in SQLite with full-text search.

    agent-gate host run agent_gate.hosts.memory:host --gateway-key KEY

Entries belong to a tenant and an isolation key; nobody finds those of another. Without a key they are the tenant's own.
They are kept in the file that `MEMORY_DATABASE` names.
"""

import os
import re
import sqlite3
import time
from contextlib import closing
from typing import Annotated, Any

from msgspec import Meta

from agent_gate.core.call import new_id
from agent_gate.hosts import Host, Refused
from agent_gate.hosts.kept import open_database
from agent_gate.hosts.tools import current_owner

host = Host("memory")
WORD = re.compile(r"\w+")
SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, scope TEXT NOT NULL, text TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS entries_owner ON entries (owner, scope, at);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, content='entries', tokenize='unicode61');
CREATE TRIGGER IF NOT EXISTS entries_in AFTER INSERT ON entries BEGIN
  INSERT INTO words (rowid, text) VALUES (new.rowid, new.text); END;
CREATE TRIGGER IF NOT EXISTS entries_out AFTER DELETE ON entries BEGIN
  INSERT INTO words (words, rowid, text) VALUES ('delete', old.rowid, old.text); END;
"""
COLUMNS = "entries.id, entries.scope, entries.text, entries.at"

MemoryScope = Annotated[str, Meta(max_length=200, description="A part of the memory, such as a project.")]
Text = Annotated[str, Meta(min_length=1, max_length=100_000, description="What to remember.")]
Ids = Annotated[list[str], Meta(min_length=1, max_length=100, description="Ids that append or query gave.")]
Limit = Annotated[int, Meta(ge=1, le=100, description="How many entries at most.")]
Days = Annotated[float, Meta(gt=0, description="Only what was appended within so many days.")]


def database() -> sqlite3.Connection:
    return open_database(os.environ.get("MEMORY_DATABASE", "memory.db"), SCHEMA)


def shown(row: tuple[Any, ...]) -> dict[str, Any]:
    return {"id": row[0], "scope": row[1], "text": row[2], "at": row[3]}


@host.tool("memory.append")
def append(text: Text, scope: MemoryScope = "") -> dict[str, Any]:
    """Remember a text; its id is in the answer"""
    name = new_id()
    with closing(database()) as memory, memory:
        memory.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", (name, current_owner(), scope, text, time.time())
        )
    return {"id": name, "operation_id": name}


@host.tool("memory.query", idempotent=True, side_effects=False)
def query(
    words: Annotated[
        str, Meta(max_length=1000, description="Words to look for; none lists the newest.")
    ] = "",
    scope: MemoryScope | None = None,
    days: Days | None = None,
    limit: Limit = 10,
) -> dict[str, Any]:
    """Find what was remembered: best matches first, or the newest"""
    where: list[str] = ["entries.owner = ?"]
    given: list[Any] = [current_owner()]
    if scope is not None:
        where, given = [*where, "entries.scope = ?"], [*given, scope]
    if days is not None:
        where, given = [*where, "entries.at >= ?"], [*given, time.time() - days * 86_400]
    found = WORD.findall(words)
    if words and not found:
        raise Refused("words must have a letter or a digit in it")
    source, order = "entries", "entries.at DESC"
    if found:
        source, order = "words JOIN entries ON entries.rowid = words.rowid", "words.rank, entries.at DESC"
        where, given = [*where, "words MATCH ?"], [*given, " ".join(f'"{word}"' for word in found)]
    sql = f"SELECT {COLUMNS} FROM {source} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"
    with closing(database()) as memory, memory:
        return {"entries": [shown(row) for row in memory.execute(sql, (*given, limit))]}


@host.tool("memory.delete", idempotent=True)
def delete(ids: Ids) -> dict[str, Any]:
    """Forget entries by their ids"""
    marks = ", ".join("?" * len(ids))
    sql = f"DELETE FROM entries WHERE owner = ? AND id IN ({marks})"
    with closing(database()) as memory, memory:
        return {
            "deleted": memory.execute(sql, (current_owner(), *ids)).rowcount,
            "operation_id": "-".join(sorted(ids))[:200],
        }

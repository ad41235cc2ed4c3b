"""Rows and statements that the tests of several folders write."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent_gate.audit import row
from agent_gate.core.call import State
from agent_gate.store import Statement, Store, StoreSettings, open_store

AT = 1_790_000_000.25


def step(call: str, state: State = State.DISPATCHING, at: float = AT, **body: object) -> Statement:
    return row(call, state, at, "coder", "time:convert", body)


def put(name: str, value: str = "1", expect: int | None = None) -> Statement:
    return Statement("INSERT INTO kv (name, value) VALUES (?, ?)", (name, value), expect)


def change(name: str, value: str, expect: int | None = None) -> Statement:
    return Statement("UPDATE kv SET value = ? WHERE name = ?", (value, name), expect)


@asynccontextmanager
async def opened(settings: StoreSettings) -> AsyncIterator[Store]:
    store = open_store(settings)
    try:
        yield store
    finally:
        await store.close()


async def values(store: Store) -> dict[str, str]:
    """The kv table, without the store's own entries."""
    found = await store.read("SELECT name, value FROM kv WHERE name NOT LIKE 'commit:%' AND name <> 'probe'")
    return dict(found)

"""The mark of a copy: whoever opens a store that bears it knows that the original may have gone on meanwhile."""

from agent_gate.store.statement import Statement, Store

COPIED = "copied"
MARK = f"INSERT INTO kv (name, value) VALUES ('{COPIED}', 'yes') ON CONFLICT (name) DO NOTHING"
UNMARK = Statement(f"DELETE FROM kv WHERE name = '{COPIED}'")


async def is_copy(store: Store) -> bool:
    return bool(await store.read("SELECT 1 FROM kv WHERE name = ?", (COPIED,)))

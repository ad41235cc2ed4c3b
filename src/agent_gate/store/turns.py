"""Turns: what is compared must still hold when the change is committed, also where several gateways change it."""

from agent_gate.store.statement import Statement

TAKE_TURN = (
    "INSERT INTO kv (name, value) VALUES (?, '') ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


def taking_turn(name: str) -> Statement:
    """Goes before a comparison and its change: whoever takes the same turn waits until these are committed."""
    return Statement(TAKE_TURN, (f"turn:{name}",))

"""A toolbox for a source that is tried by itself."""

from collections.abc import Sequence
from typing import Any

from agent_gate.core.ports import SystemClock
from agent_gate.core.tool import Definition
from agent_gate.net.pool import Pool
from agent_gate.sources.toolbox import Toolbox


class Remembered(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value


async def unheard(key: str, definitions: Sequence[Definition]) -> None:
    """Nobody listens for changes."""


def toolbox(pool: Pool, **given: Any) -> Toolbox:
    """What a source gets, with nothing behind it but the pool."""
    usual: dict[str, Any] = {
        "announce": unheard,
        "memory": Remembered(),
        "clock": SystemClock(),
        "learn": set,
        "max_bytes": 1_000_000,
    }
    return Toolbox(pool=pool, **{**usual, **given})

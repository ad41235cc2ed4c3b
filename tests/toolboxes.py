"""A toolbox for a source that is tried by itself."""

from collections.abc import Sequence
from typing import Any

from agent_gate.core.ports import Plan, SystemClock
from agent_gate.core.tool import Definition
from agent_gate.net.pool import Pool
from agent_gate.sources.toolbox import Toolbox


class Remembered(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value


async def unheard(key: str, definitions: Sequence[Definition]) -> None:
    """Nobody listens for changes."""


class NoPlans:
    """Nobody keeps sources here."""

    async def add(self, *plans: Plan) -> None:
        raise AssertionError(f"{[plan.source.key for plan in plans]} are kept by nobody")

    async def remove(self, key: str) -> None:
        raise AssertionError(f"{key} is kept by nobody")


def toolbox(pool: Pool, **given: Any) -> Toolbox:
    """What a source gets, with nothing behind it but the pool."""
    usual: dict[str, Any] = {
        "announce": unheard,
        "plans": NoPlans(),
        "memory": Remembered(),
        "clock": SystemClock(),
        "learn": set,
        "max_bytes": 1_000_000,
    }
    return Toolbox(pool=pool, **{**usual, **given})

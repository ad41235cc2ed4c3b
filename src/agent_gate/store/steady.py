"""Reading for a cache: what the store has, once nothing changes meanwhile."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

Steady = TypeVar("Steady")


async def read_steady(changes: Callable[[], int], read: Callable[[], Awaitable[Steady]]) -> Steady:
    """What `read` finds. What changes here while it reads may be missing in that, so it reads again."""
    while True:
        before = changes()
        found = await read()
        if changes() == before:
            return found

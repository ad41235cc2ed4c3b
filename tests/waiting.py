"""How a test waits for what another task, thread or process does: `wait_until`, and `await until` in a coroutine."""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0
"""Seconds, far more than a busy machine needs: only a wait that fails takes so long."""
SHORTEST, LONGEST = 0.002, 0.05
"""Seconds between two looks. A look takes away from what it waits for, so they become fewer."""


class _Looks:
    def __init__(self, what: str) -> None:
        self._what, self._ends, self._pause = what, time.monotonic() + PATIENCE, SHORTEST

    def pause(self, found: object) -> float:
        """The seconds until the next look; fails when there was one after the last moment."""
        if time.monotonic() > self._ends:
            raise AssertionError(f"{self._what} did not happen within {PATIENCE:g} s: {found!r}")
        pause, self._pause = self._pause, min(self._pause * 1.5, LONGEST)
        return pause


def wait_until(condition: Callable[[], Any], what: str = "it") -> Any:
    """The first true value of `condition`. An error in it is the test's: it says itself which ones it expects."""
    looks = _Looks(what)
    while not (found := condition()):
        time.sleep(looks.pause(found))
    return found


async def until(condition: Callable[[], Any], what: str = "it") -> Any:
    """The same while the event loop runs; `condition` may be a coroutine function."""
    looks = _Looks(what)
    while not (found := await _look(condition)):
        await asyncio.sleep(looks.pause(found))
    return found


async def _look(condition: Callable[[], Any]) -> Any:
    found = condition()
    return await found if inspect.isawaitable(found) else found

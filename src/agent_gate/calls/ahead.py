"""Calls of trusted read-only tools that run ahead of their row.

Most of them end within one tick; such a call gets one row, which says what was decided and how it ended. One that
is still running then gets its row `dispatching` like every other call.
"""

import asyncio
from functools import cached_property

from agent_gate.calls import entries
from agent_gate.core.call import Case
from agent_gate.store.statement import Store

TICK = 0.05


class Ahead:
    """Calls that run and have no row yet, by id, each with the time it was dispatched."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unwritten: dict[str, tuple[Case, float]] = {}
        self._ticking = False

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def add(self, case: Case, at: float) -> None:
        self._unwritten[case.call.id] = (case, at)
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(TICK, self.catch_up)

    def remove(self, call_id: str) -> bool:
        """The call ended; whether it still has no row."""
        return self._unwritten.pop(call_id, None) is not None

    def catch_up(self) -> None:
        """Write the rows of the calls that are still running."""
        self._ticking = False
        running, self._unwritten = self._unwritten, {}
        for case, at in running.values():
            self._store.post(entries.dispatching(case, at, asked=False))

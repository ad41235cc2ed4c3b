"""What many want to write at the same time, in few statements.

The writer makes one commit for everybody who is there, but each unit in it is statements of its own, with a round trip
each. Rows of one kind that come while one statement is being written share the next.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from agent_gate.store.statement import Statement, Store

Gatherable = TypeVar("Gatherable")
MOST_AT_ONCE = 64


class Gathered(Generic[Gatherable]):
    """`state_all` makes one statement of several rows."""

    def __init__(self, store: Store, state_all: Callable[[Sequence[Gatherable]], Statement]) -> None:
        self._store, self._state_all = store, state_all
        self._waiting: dict[asyncio.Future[None], Gatherable] = {}
        self._writing: asyncio.Task[None] | None = None

    async def write(self, row: Gatherable) -> None:
        """Return when the row is durable. Whoever is cancelled before it went to the store takes it back."""
        await self.add(row)

    def add(self, row: Gatherable) -> "asyncio.Future[None]":
        """The row goes with the next statement; nobody has to wait for it."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(self._left)
        self._waiting[future] = row
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_all())
        return future

    def _left(self, future: "asyncio.Future[None]") -> None:
        self._waiting.pop(future, None)
        if not future.cancelled():
            future.exception()

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                taken = dict(list(self._waiting.items())[:MOST_AT_ONCE])
                for future in taken:
                    del self._waiting[future]
                await self._write_once(taken)
        finally:
            self._writing = None

    async def _write_once(self, taken: "dict[asyncio.Future[None], Gatherable]") -> None:
        [failed] = await asyncio.gather(self._write_rows(list(taken.values())), return_exceptions=True)
        for future in taken:
            if future.done():
                continue
            if isinstance(failed, BaseException):
                future.set_exception(failed)
            else:
                future.set_result(None)

    async def _write_rows(self, rows: Sequence[Gatherable]) -> None:
        await self._store.write(self._state_all(rows))

"""Tasks that nobody awaits: held until they end, since the loop holds a task only weakly and could lose one. And work
that is awaited only for a while."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any


async def ends_within(seconds: float, work: Awaitable[object]) -> bool:
    """Whether it ends in that time; it is cancelled where it does not."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True


class KeptTasks:
    """The tasks of one owner, each with what it is about; a fault is logged as `fault`, never lost."""

    def __init__(self, log: logging.Logger, fault: str) -> None:
        self._log = log
        self._fault = fault
        self.running: dict[asyncio.Task[Any], str] = {}

    def start(self, work: Coroutine[Any, Any, Any], about: str = "") -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self.keep(task, about)
        return task

    def keep(self, task: asyncio.Task[Any], about: str = "") -> None:
        self.running[task] = about
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self.running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error(self._fault, exc_info=error)

    async def wait(self, seconds: float | None = None) -> None:
        """Let them end, those that are started meanwhile too; for so many seconds, or as long as it takes."""
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        while self.running:
            left = None if deadline is None else deadline - loop.time()
            if left is not None and left <= 0:
                return
            await asyncio.wait(self.running, timeout=left)

    async def cancel(self) -> None:
        """End those that are still running, but not the one that asks for it."""
        late = set(self.running) - {asyncio.current_task()}
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

"""Work that takes long, such as a search through a large result, away from the event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TypeVar

T = TypeVar("T")
AT_ONCE = 2


class Aside:
    """Runs a few pieces of work at once, each in a thread of its own that nobody waits for at the end."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, work: Callable[[], T]) -> T:
        await self._turns.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        thread = Thread(target=self._work, args=(loop, done, work), name="aside", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no thread to spare
            self._turns.release()
            raise
        return await done

    def _work(
        self, loop: asyncio.AbstractEventLoop, done: "asyncio.Future[T]", work: Callable[[], T]
    ) -> None:
        try:
            tell = partial(done.set_result, work())
        except Exception as error:  # noqa: BLE001 - the boundary of the thread: whoever waits gets it
            tell = partial(done.set_exception, error)
        with suppress(RuntimeError):  # the loop ended meanwhile
            loop.call_soon_threadsafe(self._ended, done, tell)

    def _ended(self, done: "asyncio.Future[T]", tell: Callable[[], None]) -> None:
        """The turn is over only now, also where the one who waited left before."""
        self._turns.release()
        if not done.done():
            tell()

"""A thread with an event loop for one plugin, so that whatever the plugin does happens away from the gateway's loop."""

import asyncio
import concurrent.futures
import contextlib
import inspect
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

PluginFuture = concurrent.futures.Future[Any]
STOP_SECONDS = 1.0
T = TypeVar("T")


class Crashed(Exception):
    """The plugin raised what would end the thread, the process or another wait; `str` names it."""


class Stopped(Exception):
    """The worker was stopped while the plugin was at work."""


def harmless(error: BaseException) -> Exception:
    """What a plugin raised, as something that a future can hold and that only its own caller hears of."""
    special = (StopIteration, concurrent.futures.CancelledError)
    if isinstance(error, Exception) and not isinstance(error, special):
        return error
    crashed = Crashed(type(error).__name__)
    crashed.__cause__ = error
    return crashed


def safely(function: Callable[..., T], *args: Any) -> T:
    """What a function gives that may run a stranger's code; whatever that raises ends nothing but this."""
    try:
        return function(*args)
    except BaseException as error:
        raise harmless(error) from error


def wording(error: BaseException) -> str:
    """An exception as people read it; even its text is a stranger's code."""
    try:
        return f"{type(error).__name__}: {safely(str, error)}"
    except Exception:  # noqa: BLE001 - the boundary
        return type(error).__name__


async def guard(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return await function(*args)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        failure = harmless(error)
        if failure is error:
            raise
        raise failure from error


class Worker:
    """Runs functions of a plugin: coroutine functions on its loop, others in a thread each."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[PluginFuture, asyncio.Task[Any]] = {}
        self._open: set[PluginFuture] = set()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"plugin {name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
        finally:
            self._loop.close()

    def submit(self, function: Callable[..., Any], *args: Any) -> PluginFuture:
        """Start `function(*args)`; the future ends when the work has ended, even if nobody waits any more."""
        outcome: PluginFuture = concurrent.futures.Future()
        self._open.add(outcome)
        outcome.add_done_callback(self._open.discard)
        self._loop.call_soon_threadsafe(self._begin, outcome, function, args)
        return outcome

    def cancel(self, outcome: PluginFuture) -> None:
        """Pass a cancellation on to a coroutine; a function in a thread cannot be stopped and goes on."""
        with contextlib.suppress(RuntimeError):  # stopped in the meantime
            self._loop.call_soon_threadsafe(self._cancel, outcome)

    def stop(self) -> None:
        """End the thread; one that is stuck in the plugin is left behind and dies with the process."""
        self._stopping = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)
        for outcome in tuple(self._open):
            end(outcome.set_exception, Stopped())

    def _begin(self, outcome: PluginFuture, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            runs_here = safely(inspect.iscoroutinefunction, function)
        except Exception as error:  # noqa: BLE001 - the boundary
            end(outcome.set_exception, error)
            return
        if runs_here:
            task = self._loop.create_task(guard(function, args))
            self._tasks[outcome] = task
        else:
            task = self._loop.create_task(guard(self._run_in_thread, (function, args)))
        task.add_done_callback(partial(self._finish, outcome))

    def _cancel(self, outcome: PluginFuture) -> None:
        task = self._tasks.get(outcome)
        if task is not None:
            task.cancel()

    def _finish(self, outcome: PluginFuture, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(outcome, None)
        if task.cancelled():
            end(outcome.set_exception, Stopped() if self._stopping else Crashed("cancelled"))
        elif (error := task.exception()) is not None:
            end(outcome.set_exception, error)
        else:
            end(outcome.set_result, task.result())

    async def _run_in_thread(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        ended: asyncio.Future[Any] = self._loop.create_future()
        work = partial(self._work, ended, function, args)
        threading.Thread(target=work, name=self._thread.name, daemon=True).start()
        value = await ended
        return await value if inspect.isawaitable(value) else value

    def _work(self, ended: asyncio.Future[Any], function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            value = function(*args)
        except BaseException as error:  # noqa: BLE001 - the boundary: nothing a plugin raises may end the process
            self._tell(ended.set_exception, harmless(error))
        else:
            self._tell(ended.set_result, value)

    def _tell(self, tell: Callable[[Any], None], value: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(end, tell, value)
        except RuntimeError:
            return


def end(tell: Callable[[Any], None], value: Any) -> None:
    """Tell a future how it ended, unless whoever waited for it left."""
    with contextlib.suppress(concurrent.futures.InvalidStateError, asyncio.InvalidStateError):
        tell(value)

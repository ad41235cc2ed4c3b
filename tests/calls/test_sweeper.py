"""Deadlines are kept whatever becomes of the chores that share their clock."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from tests.waiting import PATIENCE

from agent_gate.calls.sweeper import Sweeper
from agent_gate.core.ports import SystemClock
from agent_gate.errors import DependencyUnavailable


class Late:
    """A call that is past its deadline."""

    def __init__(self, task: "asyncio.Task[object]") -> None:
        self.deadline, self.timed_out, self.task = 0.0, False, task


async def is_cancelled_when_late(sweeper: Sweeper) -> bool:
    task = asyncio.ensure_future(asyncio.Event().wait())
    late = Late(task)
    sweeper.watched.add(late)
    await asyncio.wait({task}, timeout=PATIENCE)
    return late.timed_out and task.cancelled()


@asynccontextmanager
async def sweeping(chore: Callable[[], Awaitable[None]]) -> AsyncIterator[Sweeper]:
    sweeper = Sweeper(SystemClock())
    sweeper.run_every(0.0, chore)
    running = asyncio.ensure_future(sweeper.run())
    try:
        yield sweeper
    finally:
        running.cancel()
        await asyncio.wait({running})


@pytest.mark.parametrize(
    "fault", [DependencyUnavailable("The record cannot be written: disk full."), KeyError("x")]
)
async def test_a_chore_that_fails_is_logged_and_done_again_and_deadlines_are_still_kept(
    fault, caplog
) -> None:
    turns = asyncio.Semaphore(0)

    async def fails() -> None:
        turns.release()
        raise fault

    with caplog.at_level(logging.WARNING):
        async with sweeping(fails) as sweeper:
            for _ in range(3):
                await turns.acquire()
            assert await is_cancelled_when_late(sweeper)
    assert any("disk full" in record.getMessage() or record.exc_info is not None for record in caplog.records)


async def test_a_chore_that_hangs_is_not_begun_twice_and_holds_up_no_deadline() -> None:
    begun = []

    async def hangs() -> None:
        begun.append(1)
        await asyncio.Event().wait()

    async with sweeping(hangs) as sweeper:
        for _ in range(3):
            assert await is_cancelled_when_late(sweeper)
    assert begun == [1]

"""Deadlines are kept whatever becomes of the chores that share their clock."""

import asyncio
import logging

import pytest

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
    await asyncio.wait({task}, timeout=5)
    return late.timed_out and task.cancelled()


def story(chore, then) -> None:
    async def main() -> None:
        sweeper = Sweeper(SystemClock())
        sweeper.run_every(0.0, chore)
        running = asyncio.ensure_future(sweeper.run())
        try:
            await asyncio.wait_for(then(sweeper), 10)
        finally:
            running.cancel()
            await asyncio.wait({running})

    asyncio.run(main())


@pytest.mark.parametrize(
    "fault", [DependencyUnavailable("The record cannot be written: disk full."), KeyError("x")]
)
def test_a_chore_that_fails_is_logged_and_done_again_and_deadlines_are_still_kept(fault, caplog) -> None:
    turns = asyncio.Semaphore(0)

    async def fails() -> None:
        turns.release()
        raise fault

    async def then(sweeper: Sweeper) -> None:
        for _ in range(3):
            await turns.acquire()
        assert await is_cancelled_when_late(sweeper)

    with caplog.at_level(logging.WARNING):
        story(fails, then)
    assert any("disk full" in record.getMessage() or record.exc_info is not None for record in caplog.records)


def test_a_chore_that_hangs_is_not_begun_twice_and_holds_up_no_deadline() -> None:
    begun = []

    async def hangs() -> None:
        begun.append(1)
        await asyncio.Event().wait()

    async def then(sweeper: Sweeper) -> None:
        for _ in range(3):
            assert await is_cancelled_when_late(sweeper)

    story(hangs, then)
    assert begun == [1]

"""Tasks that nobody awaits live until they end, and a fault in one is in the log."""

import asyncio
import gc
import logging

from tests.waiting import PATIENCE

from agent_gate.core.tasks import KeptTasks

log = logging.getLogger("agent_gate.test")


async def test_a_task_that_nobody_holds_lives_until_it_ends():
    tasks, door, ended = KeptTasks(log, "it failed"), asyncio.Event(), []

    async def work() -> None:
        await door.wait()
        ended.append(True)

    tasks.start(work(), "tea")
    await asyncio.sleep(0)
    gc.collect()
    assert list(tasks.running.values()) == ["tea"]
    door.set()
    await tasks.wait(PATIENCE)
    assert (ended, tasks.running) == ([True], {})


async def test_waiting_counts_what_was_started_meanwhile():
    tasks, ended = KeptTasks(log, "it failed"), []

    async def last() -> None:
        ended.append("last")

    async def first() -> None:
        tasks.start(last())
        ended.append("first")

    tasks.start(first())
    await tasks.wait(PATIENCE)
    assert ended == ["first", "last"]


async def test_what_does_not_end_in_time_is_cancelled():
    tasks = KeptTasks(log, "it failed")
    late = tasks.start(asyncio.Event().wait())
    await tasks.wait(0)
    await tasks.cancel()
    assert late.cancelled()
    assert tasks.running == {}


async def test_a_fault_is_logged_with_what_failed(caplog):
    tasks = KeptTasks(log, "A cup's task failed")

    async def break_it() -> None:
        raise ValueError("spilled")

    tasks.start(break_it())
    await tasks.wait(PATIENCE)
    [line] = caplog.records
    assert (line.message, str(line.exc_info[1])) == ("A cup's task failed", "spilled")

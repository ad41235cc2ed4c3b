"""Whoever is stopped in the very moment that brings what it waits for, stops."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.calls.small_calls import YES, SmallCalls, opened

from agent_gate.approval.channels.dispatcher import wait_for_end
from agent_gate.calls.perform import Waiting
from agent_gate.core.call import Outcome, State
from agent_gate.core.catalog import Catalog, Shelf
from agent_gate.surfaces.admin.routes.live import Live
from agent_gate.surfaces.mcp.sessions.streams import Stream


async def waits(work):
    """Start `work`, and let it come to where it waits."""
    task = asyncio.ensure_future(work)
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def waits_in(calls):
    await waits(asyncio.sleep(0))
    return list(calls._tasks.running)


async def is_stopped(task):
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


@pytest.mark.parametrize("turns", range(5))
async def test_an_approved_call_that_waits_for_its_source_can_be_stopped_as_the_catalog_changes(
    tmp_path, turns
):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        asked = await gate.calls.run(gate.call(), wait=0)
        gate.publish(available=False)
        await gate.calls.answer(asked.approval_id, YES)
        [task] = await waits_in(gate.calls)
        gate.publish(available=False)
        for _ in range(turns):
            await asyncio.sleep(0)
        assert await is_stopped(task)


async def test_who_waits_for_an_outcome_can_be_stopped_as_it_comes():
    waiting = Waiting()
    task = await waits(waiting.await_outcome("a-call", 60))
    waiting.tell(Outcome(call_id="a-call", state=State.COMPLETED))
    assert await is_stopped(task)


async def test_the_reader_of_a_stream_can_be_stopped_as_an_event_comes():
    stream = Stream()
    task = await waits(anext(stream.read_chunks()))
    stream.put(b"{}")
    assert await is_stopped(task)


async def test_a_stream_of_the_admin_api_can_be_stopped_as_something_happens(tmp_path):
    async with opened(tmp_path) as store:
        gate, shelf = SmallCalls(store), Shelf()
        ledger = SimpleNamespace(store=store)
        live = Live(SimpleNamespace(calls=gate.calls, shelf=shelf, record=ledger, clock=gate.clock))
        stream = live._stream(SimpleNamespace())
        await anext(stream)
        task = await waits(anext(stream))
        shelf.swap(Catalog())
        assert await is_stopped(task)


async def test_a_channels_story_can_be_stopped_as_its_question_ends():
    ends = asyncio.get_running_loop().create_future()
    task = await waits(wait_for_end(ends, 60))
    ends.set_result(None)
    assert await is_stopped(task)

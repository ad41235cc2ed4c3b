"""A caller that takes its call back in time is heard, wherever the call stands just then."""

import asyncio

import pytest
from tests.calls.small_calls import ANNA, YES, SmallCalls, opened

from agent_gate.core.call import Caller, State

BERT = Caller(name="bert")


async def test_a_call_cancelled_while_it_is_being_recorded_is_not_sent(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store)
        call = gate.call()
        running = asyncio.ensure_future(gate.calls.run(call))
        while not gate.calls.running():
            await asyncio.sleep(0)
        assert await gate.calls.cancel(call.id, ANNA)
        outcome = await running
        assert (outcome.state, gate.jobs) == (State.FAILED, [])
        assert "Nothing was sent" in outcome.error.message
        assert await gate.story(call.id) == ["dispatching", "failed"]


async def test_a_call_that_runs_can_be_cancelled_by_its_own_caller_alone(tmp_path):
    async def work(_job):
        started.set()
        await asyncio.Event().wait()

    started = asyncio.Event()
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, work)
        call = gate.call()
        running = asyncio.ensure_future(gate.calls.run(call))
        await started.wait()
        assert not await gate.calls.cancel(call.id, BERT)
        assert not gate.calls.running()[0].cancelled
        assert await gate.calls.cancel(call.id, ANNA)
        outcome = await running
        assert (outcome.state, outcome.error.code) == (State.UNKNOWN, "OUTCOME_UNKNOWN")
        assert outcome.error.message.startswith("The caller cancelled")


async def test_a_call_cancelled_while_its_question_is_being_kept_is_withdrawn(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        call = gate.call()
        running = asyncio.ensure_future(gate.calls.run(call))
        while not gate.inbox.of_call(call.id, ANNA.name):
            await asyncio.sleep(0)
        assert gate.inbox.open() == []
        assert not await gate.calls.cancel(call.id, BERT)
        assert await gate.calls.cancel(call.id, ANNA)
        outcome = await running
        assert (outcome.state, outcome.error.code) == (State.WITHDRAWN, "APPROVAL_DENIED")
        assert outcome.error.message == "Withdrawn by the caller"
        assert gate.inbox.open() == []
        assert await gate.story(call.id) == ["pending", "withdrawn"]


@pytest.mark.parametrize("take_back", ["cancel", "withdraw"])
async def test_an_approved_call_can_be_taken_back_while_it_waits_for_its_source(tmp_path, take_back):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        asked = await gate.calls.run(gate.call(), wait=0)
        gate.publish(available=False)
        await gate.calls.answer(asked.approval_id, YES)
        waiting = asyncio.ensure_future(gate.calls.await_outcome(asked.call_id, ANNA, wait=None))
        await asyncio.sleep(0)
        assert not await getattr(gate.calls, take_back)(asked.call_id, BERT)
        assert await getattr(gate.calls, take_back)(asked.call_id, ANNA)
        outcome = await waiting
        gate.publish(available=True)
        await gate.calls.drain(10)
        assert (outcome.state, gate.jobs) == (State.FAILED, [])
        assert await gate.story(asked.call_id) == ["pending", "approved", "failed"]

"""Everybody who waits for a call is told, whoever else came or left."""

import asyncio

from tests.calls.small_calls import YES, SmallCalls, opened

from agent_gate.calls.perform import Waiting
from agent_gate.core.call import Outcome, State

DONE = Outcome(call_id="c", state=State.COMPLETED)


async def test_who_goes_on_waiting_is_told_though_another_one_left():
    waiting = Waiting()
    patient = asyncio.ensure_future(waiting.await_outcome("c", None))
    assert await waiting.await_outcome("c", 0) is None
    assert waiting.tell(DONE) == 1
    assert await patient is DONE


async def test_a_call_that_nobody_waits_for_any_more_is_forgotten():
    waiting = Waiting()
    assert await waiting.await_outcome("c", 0) is None
    patient = asyncio.ensure_future(waiting.await_outcome("d", None))
    await asyncio.sleep(0)
    patient.cancel()
    await asyncio.gather(patient, return_exceptions=True)
    assert not waiting._futures
    assert waiting.tell(DONE) == 0


async def test_who_approved_a_call_whose_source_is_away_is_told_that_it_waits(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        asked = await gate.calls.run(gate.call(), wait=0)
        gate.publish(available=False)
        answered = await gate.calls.answer(asked.approval_id, YES)
        waits = await gate.calls.learn_outcome(answered, wait=0)
        assert (waits.state, waits.error.message) == (State.APPROVED, "lab cannot be called now")
        gate.publish()
        ran = await gate.calls.learn_outcome(answered, wait=20)
        assert (ran.state, len(gate.jobs)) == (State.COMPLETED, 1)

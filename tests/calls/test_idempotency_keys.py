"""Idempotency keys: one call a day for each, whoever comes at the same time."""

import asyncio

import pytest
from tests import postgres
from tests.calls.small_calls import ANNA, YES, SmallCalls

from agent_gate.core.call import Pending, State
from agent_gate.store import StoreSettings, open_store

DAY = 86_400


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request, tmp_path):
    if request.param == "sqlite":
        return StoreSettings(path=tmp_path / "gate.db")
    return StoreSettings(type="postgres", url=postgres.server().clean_database())


async def ended(gate, **more):
    """How a call with the key ended; a person says yes where one is asked."""
    outcome = await gate.calls.run(gate.call(idempotency_key="daily", **more), wait=0)
    if isinstance(outcome, Pending):
        await gate.calls.answer(outcome.approval_id, YES)
        outcome = await gate.calls.await_outcome(outcome.call_id, ANNA, wait=None)
    return outcome


@pytest.mark.parametrize("action", ["allow", "ask"])
async def test_a_key_finds_its_call_for_a_day_and_is_free_again_after_that(settings, action):
    store = open_store(settings)
    try:
        gate = SmallCalls(store, action=action)
        first = await ended(gate)
        gate.clock.time += DAY - 1
        assert (await ended(gate)).call_id == first.call_id
        gate.clock.time += 2
        second = await ended(gate, arguments={"other": 1})
        assert (second.state, len(gate.jobs)) == (State.COMPLETED, 2)
        assert second.call_id != first.call_id
        assert (await ended(gate, arguments={"other": 1})).call_id == second.call_id
    finally:
        await store.close()


async def test_calls_that_come_together_with_one_expired_key_run_once(settings):
    store = open_store(settings)
    try:
        gate = SmallCalls(store)
        await ended(gate)
        gate.clock.time += DAY + 1
        outcomes = await asyncio.gather(*(ended(gate) for _ in range(5)))
        assert {outcome.state for outcome in outcomes} == {State.COMPLETED}
        assert len({outcome.call_id for outcome in outcomes}) == 1
        assert len(gate.jobs) == 2
    finally:
        await store.close()

"""Approvals whose store, channel, tool or caller goes away at a bad moment."""

import asyncio
import json
from dataclasses import replace

import pytest

from agent_gate.core.call import Outcome, Pending, State
from agent_gate.errors import DependencyUnavailable
from calls.small_calls import ANNA, NO, YES, Failing, SmallCalls, opened, told


def dispatches(statement):
    return "INTO record" in statement.sql and "dispatching" in statement.params


def test_an_approved_call_that_could_not_be_recorded_is_not_run_by_the_next_start(tmp_path):
    async def story():
        async with opened(tmp_path) as store:
            gate = SmallCalls(Failing(store, dispatches), action="ask")
            asked = await gate.calls.run(gate.call(), wait=0)
            await gate.calls.answer(asked.approval_id, YES)
            outcome = await gate.calls.outcome(asked.call_id, ANNA, wait=None)
            assert isinstance(outcome, Outcome)
            assert (outcome.state, outcome.error.code) == (State.FAILED, "DEPENDENCY_UNAVAILABLE")
            assert await gate.story(asked.call_id) == ["pending", "approved", "failed"]
        async with opened(tmp_path) as store:
            gate = SmallCalls(store, action="ask")
            assert (await gate.recover())["approved"] == 0
            assert gate.jobs == []
            kept = await gate.calls.outcome(asked.call_id, ANNA)
            assert kept.error.code == "DEPENDENCY_UNAVAILABLE"

    told(story)


def test_a_question_that_a_broken_store_refused_is_refused_again_and_takes_no_place(tmp_path):
    async def story():
        async with opened(tmp_path) as store:
            failing = Failing(store, lambda statement: "INTO approvals" in statement.sql)
            gate = SmallCalls(failing, action="ask")
            for _ in range(3):
                outcome = await gate.calls.run(gate.call(), wait=0)
                assert isinstance(outcome.error, DependencyUnavailable)
            failing.refuses = lambda _statement: False
            assert isinstance(await gate.calls.run(gate.call(), wait=0), Pending)

    told(story)


@pytest.mark.parametrize("ending", ["denied", "expired", "approved"])
def test_how_a_question_ended_is_kept_also_when_its_tool_is_gone(tmp_path, ending):
    async def story():
        async with opened(tmp_path) as store:
            gate = SmallCalls(store, action="ask")
            asked = await gate.calls.run(gate.call(), wait=0)
        async with opened(tmp_path) as store:
            gate = SmallCalls(store, action="ask")
            gate.publish(gone=True)
            await gate.recover()
            if ending == "denied":
                await gate.calls.answer(asked.approval_id, NO)
            elif ending == "approved":
                await gate.calls.answer(asked.approval_id, YES)
            gate.clock.time += 901
            await gate.calls.asking.expire_due()
            gate.shelf.swap(gate.shelf.catalog)
            await gate.calls.drain(10)
            outcome = await gate.calls.outcome(asked.call_id, ANNA)
            codes = {"denied": "APPROVAL_DENIED", "expired": "APPROVAL_TIMEOUT"}
            assert outcome.error.code == codes.get(ending, "DEPENDENCY_UNAVAILABLE")

    told(story)


@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_an_answer_whose_channel_goes_away_while_it_is_written_has_its_effect(tmp_path, verdict):
    async def story():
        async with opened(tmp_path) as store:
            gate = SmallCalls(store, action="ask")
            asked = await gate.calls.run(gate.call(), wait=0)
            said = replace(YES if verdict == "approve" else NO, lifetime="hour")
            answering = asyncio.ensure_future(gate.calls.answer(asked.approval_id, said))
            await asyncio.sleep(0)
            answering.cancel()
            await asyncio.wait([answering])
            assert answering.cancelled()
            outcome = await gate.calls.outcome(asked.call_id, ANNA, wait=None)
            ending = State.COMPLETED if verdict == "approve" else State.DENIED
            assert (outcome.state, gate.inbox.open()) == (ending, [])
            again = await gate.calls.run(gate.call(), wait=0)
            assert isinstance(again, Pending) == (verdict == "deny")

    told(story)


def test_a_call_approved_after_a_restart_is_answered_in_the_mode_it_was_made_in(tmp_path):
    async def story():
        async with opened(tmp_path) as store:
            asked = await (gate := SmallCalls(store, action="ask")).calls.run(
                gate.call(mode="gateway"), wait=0
            )
        async with opened(tmp_path) as store:
            gate = SmallCalls(store, action="ask")
            await gate.recover()
            await gate.calls.answer(asked.approval_id, YES)
            outcome = await gate.calls.outcome(asked.call_id, ANNA, wait=None)
            assert json.loads(outcome.result.body)["status"] == "ok"

    told(story)


def test_a_question_that_only_the_store_knows_is_taken_up_when_it_is_asked_again(tmp_path):
    async def story():
        async with opened(tmp_path) as store:
            asked = await (gate := SmallCalls(store, action="ask")).calls.run(gate.call(), wait=0)
            gate = SmallCalls(store, action="ask")
            shown = []
            gate.inbox.subscribe(lambda approval: shown.append(approval.id))
            again = await gate.calls.run(gate.call(), wait=0)
            assert (again.call_id, shown) == (asked.call_id, [asked.approval_id])
            await gate.calls.answer(again.approval_id, YES)
            outcome = await gate.calls.outcome(again.call_id, ANNA, wait=None)
            assert (outcome.state, len(gate.jobs)) == (State.COMPLETED, 1)

    told(story)

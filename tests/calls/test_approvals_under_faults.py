"""Approvals whose store, channel, tool or caller goes away at a bad moment."""

import asyncio
import json
from dataclasses import replace

import pytest
from tests.calls.small_calls import ANNA, NO, YES, Failing, Slow, SmallCalls, opened

from agent_gate.core.call import Outcome, Pending, State
from agent_gate.errors import DependencyUnavailable, InvalidArgs
from agent_gate.store.engine import Fault
from agent_gate.store.statement import Statement


def dispatches(statement):
    return "INTO record" in statement.sql and "dispatching" in statement.params


async def test_an_approved_call_that_could_not_be_recorded_is_not_run_by_the_next_start(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(Failing(store, dispatches), action="ask")
        asked = await gate.calls.run(gate.call(), wait=0)
        await gate.calls.answer(asked.approval_id, YES)
        outcome = await gate.calls.await_outcome(asked.call_id, ANNA, wait=None)
        assert isinstance(outcome, Outcome)
        assert (outcome.state, outcome.error.code) == (State.FAILED, "DEPENDENCY_UNAVAILABLE")
        assert await gate.story(asked.call_id) == ["pending", "approved", "failed"]
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        assert (await gate.recover())["approved"] == 0
        assert gate.jobs == []
        kept = await gate.calls.await_outcome(asked.call_id, ANNA)
        assert kept.error.code == "DEPENDENCY_UNAVAILABLE"


async def test_a_question_that_a_broken_store_refused_is_refused_again_and_takes_no_place(tmp_path):
    async with opened(tmp_path) as store:
        failing = Failing(store, lambda statement: "INTO approvals" in statement.sql)
        gate = SmallCalls(failing, action="ask")
        for _ in range(3):
            outcome = await gate.calls.run(gate.call(), wait=0)
            assert isinstance(outcome.error, DependencyUnavailable)
        failing.refuses = lambda _statement: False
        assert isinstance(await gate.calls.run(gate.call(), wait=0), Pending)


class Hesitant(Failing):
    """A real store that refuses questions, but only once it was told to go on."""

    def __init__(self, store):
        super().__init__(store, lambda statement: "INTO approvals" in statement.sql)
        self.goes_on = asyncio.Event()

    async def write(self, *statements):
        await self.goes_on.wait()
        return await super().write(*statements)


async def test_who_joined_a_question_that_could_not_be_kept_is_told_so(tmp_path):
    async with opened(tmp_path) as store:
        hesitant = Hesitant(store)
        gate = SmallCalls(hesitant, action="ask")
        both = [asyncio.ensure_future(gate.calls.run(gate.call())) for _ in range(2)]
        while not gate.calls._waiting._futures:
            await asyncio.sleep(0)
        hesitant.goes_on.set()
        for outcome in await asyncio.gather(*both):
            assert (outcome.state, outcome.error.code) == (State.REFUSED, "DEPENDENCY_UNAVAILABLE")


async def test_an_answer_that_comes_too_late_runs_nothing_though_nobody_closed_the_question_yet(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        asked = await gate.calls.run(gate.call(), wait=0)
        gate.clock.time += 900
        with pytest.raises(InvalidArgs, match="Too late: this approval is already expired"):
            await gate.calls.answer(asked.approval_id, replace(YES, lifetime="always"))
        assert await gate.story(asked.call_id) == ["pending", "expired"]
        assert (gate.jobs, await gate.grants.list()) == ([], [])


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_was_approved_does_not_run_as_another_definition(tmp_path, restarted):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        asked = await gate.calls.run(gate.call(), wait=0)
        if restarted:
            gate = SmallCalls(store, action="ask")
            await gate.recover()
        gate.publish(description="does something else now")
        await gate.calls.answer(asked.approval_id, YES)
        outcome = await gate.calls.await_outcome(asked.call_id, ANNA, wait=None)
        assert (outcome.state, outcome.error.code) == (State.FAILED, "FORBIDDEN")
        assert "definition changed" in outcome.error.message
        assert gate.jobs == []


async def test_arguments_that_were_changed_in_the_store_are_not_what_was_approved(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        asked = await gate.calls.run(gate.call(arguments={"room": "hall"}), wait=0)
        await store.write(Statement("UPDATE approvals SET body = replace(body, 'hall', 'cellar')"))
        gate = SmallCalls(store, action="ask")
        await gate.recover()
        await gate.calls.answer(asked.approval_id, YES)
        outcome = await gate.calls.await_outcome(asked.call_id, ANNA, wait=None)
        assert (outcome.state, outcome.error.code) == (State.FAILED, "FORBIDDEN")
        assert gate.jobs == []


@pytest.mark.parametrize("ending", ["denied", "expired", "approved"])
async def test_how_a_question_ended_is_kept_also_when_its_tool_is_gone(tmp_path, ending):
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
        await gate.calls.expire_due()
        gate.shelf.swap(gate.shelf.catalog)
        await gate.calls.drain(10)
        outcome = await gate.calls.await_outcome(asked.call_id, ANNA)
        codes = {"denied": "APPROVAL_DENIED", "expired": "APPROVAL_TIMEOUT"}
        assert outcome.error.code == codes.get(ending, "DEPENDENCY_UNAVAILABLE")


@pytest.mark.parametrize("verdict", ["approve", "deny"])
async def test_an_answer_whose_channel_goes_away_while_it_is_written_has_its_effect(tmp_path, verdict):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        asked = await gate.calls.run(gate.call(), wait=0)
        said = replace(YES if verdict == "approve" else NO, lifetime="hour")
        answering = asyncio.ensure_future(gate.calls.answer(asked.approval_id, said))
        await asyncio.sleep(0)
        answering.cancel()
        await asyncio.wait([answering])
        assert answering.cancelled()
        outcome = await gate.calls.await_outcome(asked.call_id, ANNA, wait=None)
        ending = State.COMPLETED if verdict == "approve" else State.DENIED
        assert (outcome.state, gate.inbox.open()) == (ending, [])
        again = await gate.calls.run(gate.call(), wait=0)
        assert isinstance(again, Pending) == (verdict == "deny")


async def test_a_call_approved_after_a_restart_is_answered_in_the_mode_it_was_made_in(tmp_path):
    async with opened(tmp_path) as store:
        asked = await (gate := SmallCalls(store, action="ask")).calls.run(gate.call(mode="gateway"), wait=0)
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        await gate.recover()
        await gate.calls.answer(asked.approval_id, YES)
        outcome = await gate.calls.await_outcome(asked.call_id, ANNA, wait=None)
        assert json.loads(outcome.result.body)["status"] == "ok"


async def test_a_question_that_only_the_store_knows_is_taken_up_when_it_is_asked_again(tmp_path):
    async with opened(tmp_path) as store:
        asked = await (gate := SmallCalls(store, action="ask")).calls.run(gate.call(), wait=0)
        gate = SmallCalls(store, action="ask")
        shown = []
        gate.inbox.subscribe(lambda approval: shown.append(approval.id))
        again = await gate.calls.run(gate.call(), wait=0)
        assert (again.call_id, shown) == (asked.call_id, [asked.approval_id])
        await gate.calls.answer(again.approval_id, YES)
        outcome = await gate.calls.await_outcome(again.call_id, ANNA, wait=None)
        assert (outcome.state, len(gate.jobs)) == (State.COMPLETED, 1)


async def test_a_call_approved_just_before_the_store_broke_is_not_said_to_have_failed(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")

        def break_store(approval):
            if approval.state is State.APPROVED:
                store._writer.fault = Fault("a failed fsync", broken=True)

        asked = await gate.calls.run(gate.call(), wait=0)
        gate.inbox.subscribe(break_store)
        waiting = asyncio.ensure_future(gate.calls.await_outcome(asked.call_id, ANNA, wait=None))
        await asyncio.sleep(0)
        await gate.calls.answer(asked.approval_id, YES)
        outcome = await waiting
        assert (outcome.state, outcome.error.code) == (State.UNKNOWN, "OUTCOME_UNKNOWN")
        assert "may when the gateway is started again" in outcome.error.message
        assert gate.jobs == []
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        assert (await gate.recover())["approved"] == 1
        await gate.calls.drain(10)
        assert len(gate.jobs) == 1


async def approved_by_a_gateway_that_ends(folder):
    async with opened(folder) as store:
        gate = SmallCalls(store, action="ask")
        await gate.calls.drain(0)
        asked = await gate.calls.run(gate.call(), wait=0)
        await gate.calls.answer(asked.approval_id, YES)
        assert gate.jobs == []
    return asked


async def test_what_is_approved_when_nothing_is_started_any_more_runs_at_the_next_start(tmp_path):
    asked = await approved_by_a_gateway_that_ends(tmp_path)
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        assert (await gate.recover())["approved"] == 1
        outcome = await gate.calls.await_outcome(asked.call_id, ANNA, wait=None)
        assert (outcome.state, len(gate.jobs)) == (State.COMPLETED, 1)


async def test_an_approval_that_expired_while_no_gateway_ran_is_not_honoured_any_more(tmp_path):
    asked = await approved_by_a_gateway_that_ends(tmp_path)
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        gate.clock.time += 7 * 86_400
        assert await gate.recover() == {"pending": 0, "approved": 0, "late": 1, "unknown": 0}
        outcome = await gate.calls.await_outcome(asked.call_id, ANNA)
        assert (outcome.error.code, gate.jobs) == ("APPROVAL_TIMEOUT", [])
        assert await gate.story(asked.call_id) == ["pending", "approved", "failed"]


async def test_an_approval_that_was_durable_only_after_its_time_is_not_honoured(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")

        def pass_time(approval):
            if approval.state is State.APPROVED:
                gate.clock.time = approval.asked.expires_at

        asked = await gate.calls.run(gate.call(), wait=0)
        gate.inbox.subscribe(pass_time)
        waiting = asyncio.ensure_future(gate.calls.await_outcome(asked.call_id, ANNA, wait=None))
        await asyncio.sleep(0)
        await gate.calls.answer(asked.approval_id, YES)
        outcome = await waiting
        assert (outcome.error.code, gate.jobs) == ("APPROVAL_TIMEOUT", [])
        assert await gate.story(asked.call_id) == ["pending", "approved", "failed"]


@pytest.mark.parametrize("action", ["allow", "ask"])
async def test_a_call_whose_claim_was_in_doubt_for_longer_than_it_may_take_is_not_sent(tmp_path, action):
    async with opened(tmp_path) as store:
        gate = SmallCalls(Slow(store), action=action)
        gate.store.clock = gate.clock
        call = gate.call(timeout=5.0)
        running = asyncio.ensure_future(gate.calls.run(call))
        if action == "ask":
            await gate.calls.answer((await gate.asked()).id, YES)
        outcome = await running
        assert (outcome.state, outcome.error.code, gate.jobs) == (State.FAILED, "TIMEOUT", [])
        assert "Nothing was sent" in outcome.error.message
        assert (await gate.story(call.id))[-2:] == ["dispatching", "failed"]


async def test_a_call_approved_while_the_others_end_is_let_end_too(tmp_path):
    async with opened(tmp_path) as store:
        release = {1: asyncio.Event(), 2: asyncio.Event()}

        async def work(job):
            await release[job.arguments["n"]].wait()
            return b"{}"

        gate = SmallCalls(store, work, action="ask")
        asked = [await gate.calls.run(gate.call(arguments={"n": n}), wait=0) for n in (1, 2)]
        await gate.calls.answer(asked[0].approval_id, YES)
        draining = asyncio.ensure_future(gate.calls.drain(10))
        await asyncio.sleep(0)
        await gate.calls.answer(asked[1].approval_id, YES)
        release[1].set()
        await gate.calls.await_outcome(asked[0].call_id, ANNA, wait=None)
        while len(gate.jobs) < 2:
            await asyncio.sleep(0)
        await store.flush()
        assert not draining.done()
        release[2].set()
        await draining
        assert [(await gate.story(one.call_id))[-1] for one in asked] == ["completed", "completed"]


async def test_questions_that_cannot_be_closed_are_spoken_of_once(tmp_path, caplog):
    with caplog.at_level("WARNING", "agent_gate.approvals"):
        async with opened(tmp_path) as store:
            failing = Failing(store, lambda statement: "UPDATE approvals" in statement.sql)
            gate = SmallCalls(failing, action="ask")
            for n in (1, 2):
                await gate.calls.run(gate.call(arguments={"n": n}), wait=0)
            gate.clock.time += 901
            for _ in range(5):
                await gate.calls.expire_due()
            assert [record.levelname for record in caplog.records if "open" in record.message] == ["WARNING"]
            failing.refuses = lambda _statement: False
            await gate.calls.expire_due()
            assert gate.inbox.open() == []


async def test_uses_of_a_grant_are_not_heaped_up_while_nothing_can_be_written(tmp_path, monkeypatch):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        asked = await gate.calls.run(gate.call(), wait=0)
        await gate.calls.answer(asked.approval_id, replace(YES, lifetime="hour"))
        await gate.calls.await_outcome(asked.call_id, ANNA, wait=None)
        assert (await gate.calls.run(gate.call())).state is State.COMPLETED
        monkeypatch.setattr("agent_gate.store.durable.CROWD", 0)
        assert (await gate.calls.run(gate.call())).state is State.COMPLETED
        await store.flush()
        [grant] = await gate.grants.list()
        assert grant.used == 1


async def test_who_waits_for_a_question_that_was_denied_where_it_was_not_heard_is_told(tmp_path):
    async with opened(tmp_path) as store:
        here, there = SmallCalls(store, action="ask"), SmallCalls(store, action="ask")
        waiting = asyncio.ensure_future(here.calls.run(here.call()))
        asked = await here.asked()
        await there.inbox.load()
        await there.calls.answer(asked.id, NO)
        await there.calls.drain(10)
        here.clock.time += 901
        await here.calls.expire_due()
        assert (await waiting).state is State.DENIED
        assert (len(here.jobs), len(there.jobs)) == (0, 0)


async def test_who_waits_for_a_call_hears_nothing_of_the_answer_that_came_second(tmp_path):
    async with opened(tmp_path) as store:
        release = asyncio.Event()

        async def work(_job):
            await release.wait()
            return b"{}"

        gate = SmallCalls(store, work, action="ask")
        waiting = asyncio.ensure_future(gate.calls.run(gate.call()))
        asked = await gate.asked()
        answers = (gate.calls.answer(asked.id, YES), gate.calls.answer(asked.id, NO))
        first, second = await asyncio.gather(*answers, return_exceptions=True)
        assert (first.state, type(second)) == (State.APPROVED, InvalidArgs)
        release.set()
        assert (await waiting).state is State.COMPLETED

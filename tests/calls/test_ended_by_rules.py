"""A question that no answer could make run ends itself, and who answers one hears what became of its call."""

import asyncio
from dataclasses import replace

import pytest
from tests.calls.small_calls import ANNA, NO, YES, SmallCalls, opened

from agent_gate.core.call import Result, State
from agent_gate.errors import Forbidden, InvalidArgs, UpstreamError
from agent_gate.policy import Policy
from agent_gate.policy.rule import make_rule


def deny(gate, why=""):
    rule = make_rule(pattern="*", action="deny", description=why)
    gate.in_force.swap(replace(gate.in_force.terms, policy=Policy([rule])))


async def test_an_open_question_that_a_rule_now_denies_ends_itself(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        waiting = asyncio.ensure_future(gate.calls.run(gate.call()))
        asked = await gate.asked()
        await gate.calls.end_denied()
        assert gate.inbox.open() == [asked]
        deny(gate)
        await gate.calls.end_denied()
        outcome = await waiting
        assert (outcome.state, outcome.error.message) == (State.DENIED, "Denied by policy")
        assert isinstance(outcome.error, Forbidden)
        assert gate.inbox.open() == gate.jobs == []
        assert await gate.story(asked.call_id) == ["pending", "denied"]
        [kept] = (await gate.calls.read_kept(ANNA)).results
        assert kept.outcome.error.message == "Denied by policy"
        with pytest.raises(InvalidArgs, match="already denied"):
            await gate.calls.answer(asked.id, YES)


async def test_a_question_that_a_rule_ends_says_why_to_its_caller_and_in_the_record(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        waiting = asyncio.ensure_future(gate.calls.run(gate.call()))
        asked = await gate.asked()
        deny(gate, "The baby sleeps")
        await gate.calls.end_denied()
        assert (await waiting).error.details == {"reason": "The baby sleeps"}
        [kept] = (await gate.calls.read_kept(ANNA)).results
        assert kept.outcome.error.details == {"reason": "The baby sleeps"}
        assert (await gate.inbox.get(asked.id)).answered.reason == "The baby sleeps"


async def test_a_sentence_leaves_out_what_the_call_does_not_say(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask", sentence="Read[ number {n}] now?")
        for arguments, sentence in (({"n": 2}, "Read number 2 now?"), ({}, "Read now?")):
            await gate.calls.run(gate.call(arguments=arguments), wait=0)
            assert gate.inbox.open()[-1].asked.sentence == sentence


async def test_an_answer_is_told_what_became_of_the_call(tmp_path):
    async def fails(_job):
        raise UpstreamError("The lamp is broken")

    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        for work, state, error in (
            (None, State.COMPLETED, None),
            (fails, State.FAILED, "The lamp is broken"),
        ):
            gate.work = work
            await gate.calls.run(gate.call(), wait=0)
            answered = await gate.calls.answer((await gate.asked()).id, YES)
            outcome = await gate.calls.learn_outcome(answered)
            assert (outcome.state, outcome.error and outcome.error.message) == (state, error)


async def test_an_answer_does_not_wait_for_a_long_call_or_for_a_denied_one(tmp_path):
    release = asyncio.Event()

    async def slow(_job):
        await release.wait()
        return Result(b"1")

    async with opened(tmp_path) as store:
        gate = SmallCalls(store, slow, action="ask")
        await gate.calls.run(gate.call(), wait=0)
        answered = await gate.calls.answer((await gate.asked()).id, YES)
        assert await gate.calls.learn_outcome(answered, wait=0.01) is None
        release.set()
        assert (await gate.calls.learn_outcome(answered)).state is State.COMPLETED
        await gate.calls.run(gate.call(arguments={"n": 2}), wait=0)
        denied = await gate.calls.answer((await gate.asked()).id, NO)
        assert await gate.calls.learn_outcome(denied) is None


async def test_a_call_that_a_rule_denies_after_its_approval_says_why(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        await gate.calls.run(gate.call(), wait=0)
        rule = make_rule(pattern="*", action="deny", description="Not while we move")
        gate.in_force.swap(replace(gate.in_force.terms, policy=Policy([rule])))
        answered = await gate.calls.answer((await gate.asked()).id, YES)
        outcome = await gate.calls.learn_outcome(answered)
        assert isinstance(outcome.error, Forbidden)
        assert outcome.error.details == {"reason": "Not while we move"}
        assert gate.jobs == []

"""What a caller's own client says counts for that call alone, and only where a rule lets it."""

import pytest
from tests.calls.small_calls import ANNA, SmallCalls, opened

from agent_gate.approval.channels.client import answer_in
from agent_gate.core.approval import Answer
from agent_gate.core.call import Caller

BERT = Caller(name="bert")
YES = Answer(verdict="approve", person="anna", channel="client")
NO = Answer(verdict="deny", person="anna", channel="client")


async def test_a_client_answers_its_own_question_and_no_other(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask", via="client")
        mine = await gate.calls.run(gate.call(arguments={"n": 1}), wait=0)
        other = await gate.calls.run(gate.call(arguments={"n": 2}), wait=0)
        berts = await gate.calls.run(gate.call(caller=BERT), wait=0)
        await gate.calls.client_answered(mine.call_id, BERT, YES)
        assert len(gate.inbox.open()) == 3
        await gate.calls.client_answered(mine.call_id, ANNA, YES)
        await gate.calls.drain(10)
        assert {a.call_id for a in gate.inbox.open()} == {other.call_id, berts.call_id}
        assert [job.case.call.arguments for job in gate.jobs] == [{"n": 1}]


@pytest.mark.parametrize("said", [YES, NO])
async def test_where_no_rule_says_so_a_client_answers_nothing(tmp_path, said):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask")
        asked = await gate.calls.run(gate.call(), wait=0)
        await gate.calls.client_answered(asked.call_id, ANNA, said)
        await gate.calls.drain(10)
        assert await gate.story(asked.call_id) == ["pending"]


@pytest.mark.parametrize(
    "said", [None, "accept", [], {}, {"action": "cancel"}, {"action": ["accept"]}, {"content": {"run": True}}]
)
def test_a_form_that_was_put_away_is_no_answer(said):
    assert answer_in(said, "anna") is None


@pytest.mark.parametrize("content", [None, {}, {"run": "true"}, {"run": 1}, {"run": False}, ["run"]])
async def test_only_a_plain_yes_is_a_yes(tmp_path, content):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store, action="ask", via="client")
        asked = await gate.calls.run(gate.call(), wait=0)
        said = answer_in({"action": "accept", "content": content}, "anna")
        await gate.calls.client_answered(asked.call_id, ANNA, said)
        await gate.calls.drain(10)
        assert (await gate.story(asked.call_id), gate.jobs) == (["pending", "denied"], [])

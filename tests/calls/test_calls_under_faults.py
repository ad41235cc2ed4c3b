"""What a call is told and what the record says of it when the store, the source or a summary fails at a bad moment."""

import json

import pytest
from tests.calls.small_calls import ANNA, YES, Failing, SmallCalls, opened

from agent_gate.core.call import Pending, Result, State
from agent_gate.core.catalog import Listing, build
from agent_gate.core.tool import Definition
from agent_gate.core.traits import Traits
from agent_gate.errors import DependencyUnavailable

LARGE = json.dumps([{"n": n, "name": f"thing {n}"} for n in range(3000)]).encode()


def keeps_an_artifact(statement):
    return "INTO artifacts" in statement.sql


async def test_a_call_that_ran_is_completed_also_when_its_large_result_cannot_be_stored(tmp_path):
    async def work(_job):
        return LARGE

    async with opened(tmp_path) as store:
        gate = SmallCalls(Failing(store, keeps_an_artifact), work)
        call = gate.call(mode="gateway")
        outcome = await gate.calls.run(call)
        assert (outcome.state, outcome.error) == (State.COMPLETED, None)
        envelope = json.loads(outcome.result.body)
        assert envelope["artifacts"] == []
        assert "3000 items" in envelope["summary"]
        assert "disk full" in envelope["facts"][0]
        assert await gate.story(call.id) == ["dispatching", "completed"]


@pytest.mark.parametrize(("record", "before"), [("await", ["dispatching"]), ("behind", [])])
async def test_a_call_whose_record_may_be_behind_does_not_wait_for_its_row(tmp_path, record, before):
    async with opened(tmp_path) as store:
        gate, seen = SmallCalls(store), []

        async def work(job):
            seen.append(await gate.story(job.case.call.id))
            return Result(b"1")

        gate.work = work
        traits = Traits(read_only=True, trusted=True)
        definition = Definition(name="act", traits=traits, record=record)
        gate.shelf.swap(build([Listing(key="lab", namespace="lab", definitions=[definition])]))
        call = gate.call()
        await gate.calls.run(call)
        assert seen == [before]
        await store.flush()
        assert (await gate.story(call.id))[-1] == "completed"


@pytest.mark.parametrize("action", ["allow", "ask"])
async def test_a_source_that_breaks_leaves_no_call_without_an_end_and_a_warning(tmp_path, action, caplog):
    async def work(_job):
        raise KeyError("a fault in the source")

    async with opened(tmp_path) as store:
        gate = SmallCalls(store, work, action=action)
        outcome = await gate.calls.run(gate.call(), wait=0)
        if isinstance(outcome, Pending):
            await gate.calls.answer(outcome.approval_id, YES)
            outcome = await gate.calls.await_outcome(outcome.call_id, ANNA, wait=None)
        assert (outcome.state, outcome.error.code) == (State.UNKNOWN, "OUTCOME_UNKNOWN")
        assert (await gate.story(outcome.call_id))[-1] == "unknown"
    ended = [line.levelname for line in caplog.records if line.message == "Call ended"]
    assert ended == ["WARNING"]


@pytest.mark.parametrize("mode", ["full", "proxy", "gateway"])
async def test_what_a_source_refused_is_what_a_caller_of_any_mode_is_told(tmp_path, mode):
    async def work(_job):
        raise DependencyUnavailable("The server is away")

    async with opened(tmp_path) as store:
        gate = SmallCalls(store, work)
        outcome = await gate.calls.run(gate.call(mode=mode))
        assert (outcome.state, outcome.error.message) == (State.FAILED, "The server is away")


async def test_a_result_that_cannot_be_read_ends_its_call(tmp_path):
    async def work(_job):
        return Result(b'{"content": 5}', "mcp")

    async with opened(tmp_path) as store:
        gate = SmallCalls(store, work)
        call = gate.call(mode="gateway")
        outcome = await gate.calls.run(call)
        assert (outcome.state, outcome.error.code) == (State.FAILED, "INTERNAL")
        assert "ran" in outcome.error.message
        assert await gate.story(call.id) == ["dispatching", "failed"]


DEEP = b"[" * 5000 + b"]" * 5000


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (
            Result(json.dumps({"content": [{"type": "text", "text": DEEP.decode()}]}).encode(), "mcp"),
            "completed",
        ),
        (Result(b'{"isError":true,"content":' + DEEP + b"}", "mcp", True), "failed"),
    ],
    ids=["text", "error"],
)
@pytest.mark.parametrize("mode", ["full", "gateway"])
async def test_a_result_nested_too_deeply_ends_its_call(tmp_path, result, state, mode):
    async def work(_job):
        return result

    async with opened(tmp_path) as store:
        gate = SmallCalls(store, work)
        call = gate.call(mode=mode)
        await gate.calls.run(call)
        assert await gate.story(call.id) == ["dispatching", state]


async def test_a_question_its_answer_and_a_failure_are_one_line_each_at_info(tmp_path, caplog):
    with caplog.at_level("INFO", logger="agent_gate"):

        async def work(_job):
            raise DependencyUnavailable("The server is away")

        async with opened(tmp_path) as store:
            gate = SmallCalls(store, work, action="ask")
            pending = await gate.calls.run(gate.call(), wait=0)
            await gate.calls.answer(pending.approval_id, YES)
            await gate.calls.await_outcome(pending.call_id, ANNA, wait=None)
    lines = [(line.message, line.levelname) for line in caplog.records if hasattr(line, "call")]
    assert lines == [("Waiting for a person", "INFO"), ("Approval resolved", "INFO"), ("Call ended", "INFO")]

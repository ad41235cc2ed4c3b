"""A call that is stopped while its result is shaped has run, and the record says how it ended."""

import asyncio
import json

import pytest
from tests.calls.small_calls import ANNA, YES, Failing, SmallCalls, opened

from agent_gate.core.call import Result, State

LARGE = json.dumps([{"n": n, "name": f"thing {n}"} for n in range(3000)]).encode()


class Hanging(Failing):
    """A real store that never says whether an artifact was written, as one whose disk hangs."""

    def __init__(self, store):
        super().__init__(store, lambda _statement: False)
        self.reached = asyncio.Event()

    async def write(self, *statements):
        if any("INTO artifacts" in statement.sql for statement in statements):
            self.reached.set()
            await asyncio.Event().wait()
        return await super().write(*statements)


def hang_in_summary(gate, reached):
    async def summarised(_case, _result, _artifact):
        reached.set()
        await asyncio.Event().wait()

    gate.shaper._summarise = summarised


@pytest.mark.parametrize("place", ["stored", "summarised"])
@pytest.mark.parametrize(
    ("result", "state"), [(Result(LARGE), "completed"), (Result(LARGE, "json", True), "failed")]
)
async def test_a_call_stopped_while_its_result_is_shaped_ends_as_it_did(tmp_path, place, result, state):
    async def work(_job):
        return result

    async with opened(tmp_path) as store:
        gate = SmallCalls(Hanging(store) if place == "stored" else store, work)
        reached = gate.store.reached if place == "stored" else asyncio.Event()
        if place == "summarised":
            hang_in_summary(gate, reached)
        call = gate.call(mode="gateway")
        running = asyncio.ensure_future(gate.calls.run(call))
        await reached.wait()
        running.cancel()
        outcome = await running
        assert outcome.state == state
        assert await gate.story(call.id) == ["dispatching", state]
        [artifact] = json.loads(outcome.result.body)["artifacts"]
        assert (await gate.artifacts.load(artifact["handle"], ANNA)).body == LARGE
        assert (await gate.recover())["unknown"] == 0


async def test_an_approved_call_that_the_gateway_stops_while_its_result_is_shaped_keeps_it(tmp_path):
    async def work(_job):
        return LARGE

    async with opened(tmp_path) as store:
        gate, reached = SmallCalls(store, work, action="ask"), asyncio.Event()
        hang_in_summary(gate, reached)
        asked = await gate.calls.run(gate.call(mode="gateway"), wait=0)
        await gate.calls.answer(asked.approval_id, YES)
        await reached.wait()
        await gate.calls.drain(0)
        assert await gate.story(asked.call_id) == ["pending", "approved", "dispatching", "completed"]
        [kept] = (await gate.calls.read_kept(ANNA)).results
        assert kept.outcome.state is State.COMPLETED
        assert "ran" in json.loads(kept.outcome.result.body)["summary"]

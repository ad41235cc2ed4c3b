"""Which results go to the agent as they are, and which as an envelope."""

import json

import msgspec
import pytest
from tests.calls.small_calls import Clock, in_force, opened

from agent_gate.calls.shaping import Shaper
from agent_gate.core.call import Call, Caller, Case, Decision, Result
from agent_gate.core.catalog import Listing, build
from agent_gate.core.tool import Definition
from agent_gate.discovery.tokens import fits
from agent_gate.results.artifacts import Artifacts
from agent_gate.results.budget import DEFAULT_BUDGET

SMALL, LARGE = Result(b'"hi"'), Result(json.dumps("word " * 5000).encode())


def case(mode="full", tool=None, caller=None, **more):
    definition = Definition(name="t", budget=tool, **more)
    [found] = build([Listing(key="lab", namespace="lab", definitions=[definition])]).tools
    return Case(
        call=Call(tool=found.wire, arguments={}, caller=Caller(name="pi", budget=caller), mode=mode),
        tool=found,
        signature=found.wire,
        decision=Decision(effect="allow"),
        arguments_hash="",
        definition_hash=found.pin,
    )


@pytest.mark.parametrize(
    ("tool", "caller", "default", "expected"),
    [
        (None, None, None, None),
        (10, None, None, 10),
        (None, 20, None, 20),
        (10, 20, None, 10),
        (0, 20, 5, 0),
        (10, 20, 5, 5),
    ],
)
def test_the_smallest_budget_that_anybody_set_holds(tool, caller, default, expected):
    shaper = Shaper(None, fits, in_force(budget=default))
    assert shaper.budget(case("full", tool, caller)) == expected
    assert shaper.budget(case("proxy", tool, caller)) == (DEFAULT_BUDGET if expected is None else expected)
    assert shaper.leaves(case("full", tool, caller)) == (expected is None)


@pytest.mark.parametrize(
    ("mode", "result", "shaped"),
    [
        ("gateway", SMALL, True),
        ("gateway", LARGE, True),
        ("full", SMALL, False),
        ("full", LARGE, True),
        ("proxy", SMALL, False),
        ("proxy", LARGE, True),
    ],
)
async def test_gateway_callers_always_get_an_envelope_and_others_above_the_budget(
    tmp_path, mode, result, shaped
):
    async with opened(tmp_path) as store:
        shaper = Shaper(Artifacts(store, Clock()), fits, in_force(budget=100))
        found = await shaper(case(mode), result)
        assert (found is not result) == shaped
        assert not shaped or "summary" in json.loads(found.body)


@pytest.mark.parametrize("mode", ["full", "proxy", "gateway"])
@pytest.mark.parametrize("padding", ["", "word " * 5000])
async def test_a_question_to_the_client_and_what_was_read_pass_as_they_are_and_data_like_it_does_not(
    tmp_path, mode, padding
):
    async with opened(tmp_path) as store:
        shaper = Shaper(Artifacts(store, Clock()), fits, in_force(budget=100))
        question = {"resultType": "input_required", "inputRequests": {}, "_meta": {"note": padding}}
        asks = Result(msgspec.json.encode(question), "mcp", unfinished=True)
        assert await shaper(case(mode), asks) is asks
        data = Result(asks.body, "json")
        assert (await shaper(case(mode), data) is data) == (mode != "gateway" and not padding)
        read = Result(msgspec.json.encode({"contents": [{"uri": "x:y", "text": padding}]}), "mcp")
        assert await shaper(case(mode, method="resources/read"), read) is read


@pytest.mark.parametrize(
    "disguised",
    [
        {"content": [], "structuredContent": {"resultType": "input_required", "pad": "word " * 5000}},
        {"content": [{"type": "text", "text": '"input_required"' + "word " * 5000}]},
    ],
)
async def test_a_result_that_only_speaks_of_a_question_keeps_to_the_budget(tmp_path, disguised):
    async with opened(tmp_path) as store:
        shaper = Shaper(Artifacts(store, Clock()), fits, in_force(budget=100))
        large = Result(msgspec.json.encode(disguised), "mcp")
        assert len((await shaper(case("proxy"), large)).body) < 5000

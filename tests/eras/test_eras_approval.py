"""A tool that needs a person's yes and then asks its client twice: the person is asked once for all rounds."""

import asyncio
from itertools import product

import pytest
from tests.eras.era_agents import agent, new_key, noted, story, text
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
ERAS = ("handshake", "modern")
CELLS = pytest.mark.parametrize(
    ("client", "server", "transport"),
    [pytest.param(*row, id="-".join(row)) for row in product(ERAS, ERAS, ("http", "stdio"))],
)


def questions(gateway, key):
    return [row for row in gateway.admin.get("/api/approvals") if key in str(row["arguments"])]


async def approve(gateway, key):
    """Say yes to the one question about `key`, once it is asked."""
    [question] = await until(lambda: questions(gateway, key), "the question")
    path = f"/api/approvals/{question['id']}"
    await asyncio.to_thread(gateway.admin.request, "POST", path, {"verdict": "approve"})


def asked(gateway, key):
    """How many of the calls that carry `key` a person was asked about."""
    return sum("pending" in states for states in story(gateway, key))


@CELLS
async def test_a_person_is_asked_once_however_many_rounds_the_call_takes(gateway, client, server, transport):
    key = new_key()
    async with agent(gateway, client) as one:
        call = asyncio.create_task(one.call(f"{server}_{transport}__two_rounds", key=key))
        await approve(gateway, key)
        assert text(await call) == "Ada likes green"
        assert one.asked == ["Who are you?", "Which colour?"]
        assert asked(gateway, key) == 1
        assert questions(gateway, key) == []


@pytest.mark.parametrize("server", ERAS)
async def test_a_person_is_asked_once_when_the_rounds_go_through_tool_execute(gateway, server):
    key = new_key()
    async with agent(gateway, "modern", "/gateway") as one:
        call = asyncio.create_task(one.execute(f"{server}_http:two_rounds", key=key))
        await approve(gateway, key)
        assert "Ada likes green" in text(await call)
        assert asked(gateway, key) == 1


@pytest.mark.parametrize("client", ERAS)
async def test_the_same_call_made_anew_is_asked_about_anew(gateway, client):
    key = new_key()
    async with agent(gateway, client) as one:
        for times in 1, 2:
            call = asyncio.create_task(one.call("modern_http__two_rounds", key=key))
            await approve(gateway, key)
            assert text(await call) == "Ada likes green"
            assert asked(gateway, key) == times


async def test_a_round_that_is_sent_twice_runs_once(gateway):
    key = new_key()
    async with agent(gateway, "modern") as one:
        call = asyncio.create_task(one.leg("modern_http__two_rounds", key=key))
        await approve(gateway, key)
        first = await call
        answers = {"who": {"action": "accept", "content": {"name": "Ada"}}}
        again = {"requestState": first["requestState"], "inputResponses": answers}
        second = await one.leg("modern_http__two_rounds", again, key=key)
        repeated = await one.leg("modern_http__two_rounds", again, key=key)
        assert second["inputRequests"] == repeated["inputRequests"]
        assert list(second["inputRequests"]) == ["colour"]
        assert noted(gateway, "rounds", key) == 2


async def test_a_state_does_not_carry_the_yes_over_to_other_arguments(gateway):
    key = new_key()
    async with agent(gateway, "modern") as one:
        call = asyncio.create_task(one.leg("modern_http__two_rounds", key=key))
        await approve(gateway, key)
        state = {"requestState": (await call)["requestState"], "inputResponses": {}}
        other = new_key()
        error = await one.leg("modern_http__two_rounds", state, key=other)
        assert error["code"] == -32602
        assert not noted(gateway, "rounds", other)


@pytest.mark.parametrize(("client", "server"), [*product(ERAS, ERAS)])
async def test_a_client_that_may_approve_is_asked_once_and_then_for_what_the_tool_asks(
    gateway, client, server
):
    async with agent(gateway, client) as one, agent(gateway, client, "/gateway") as other:
        assert text(await one.call(f"{server}_http__guarded")) == "hello Ada"
        assert "hello Ada" in text(await other.execute(f"{server}_stdio:guarded"))
        for each in one, other:
            approval, question = each.asked
            assert "guarded" in approval
            assert question == "Who are you?"

"""Where the eras meet in unusual ways: answers that are no, calls that end after a question, many callers at once."""

import asyncio
from contextlib import AsyncExitStack
from itertools import product

import pytest
from mcp.shared.exceptions import MCPError
from tests.eras.era_agents import agent, cancel, new_key, noted, states, text
from tests.gateway import OTHER_TOKEN, TOKEN
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
ERAS = ("handshake", "modern")
TRANSPORTS = ("http", "stdio")
PAIRS = pytest.mark.parametrize(
    ("client", "server", "transport"),
    [pytest.param(*row, id="-".join(row)) for row in product(ERAS, ERAS, TRANSPORTS)],
)


@PAIRS
async def test_a_call_that_is_cancelled_after_it_asked_is_cancelled_at_the_server(
    gateway, client, server, transport
):
    key = new_key()
    async with agent(gateway, client) as one:
        call = asyncio.create_task(one.call(f"{server}_{transport}__ask_and_wait", key=key))
        await until(lambda: noted(gateway, "began", key), "the call's last round")
        assert one.asked == ["Who are you?"]
        await cancel(gateway, call, key)


@PAIRS
async def test_a_person_who_declines_is_heard_by_the_server(gateway, client, server, transport):
    async with agent(gateway, client, action="decline") as one:
        result = await one.call(f"{server}_{transport}__elicit")
        assert text(result) == "declined by decline"


@PAIRS
async def test_a_client_that_cannot_be_asked_gets_an_error_and_no_question(
    gateway, client, server, transport
):
    """Between two modern sides a question passes as it is, so there the client itself refuses it."""

    async with agent(gateway, client, can_answer=False) as one:
        with pytest.raises(MCPError, match=r"(?i)elicitation"):
            await one.call(f"{server}_{transport}__elicit")
        assert one.asked == []


@pytest.mark.parametrize("server", ERAS)
async def test_questions_of_calls_at_once_reach_each_its_own_client_over_http(gateway, server):
    async with AsyncExitStack() as stack:
        agents = [
            await stack.enter_async_context(
                agent(gateway, era, token=token, name=f"{era} of {token[-9:]} {n}")
            )
            for era, token, n in product(ERAS, (TOKEN, OTHER_TOKEN), (1, 2))
        ]
        results = await asyncio.gather(*(one.call(f"{server}_http__elicit") for one in agents))
        assert [text(result) for result in results] == [f"hello {one.name}" for one in agents]
        assert all(one.asked == ["Who are you?"] for one in agents)


@pytest.mark.parametrize("client", ERAS)
async def test_a_question_of_a_shared_handshake_child_is_refused_while_several_calls_run_on_it(
    gateway, client
):
    key = new_key()
    async with agent(gateway, client) as busy, agent(gateway, client) as one:
        waiting = asyncio.create_task(busy.call("handshake_stdio__wait", key=key))
        await until(lambda: noted(gateway, "began", key), "the other call")
        with pytest.raises(MCPError, match="Make the call again when no other runs"):
            await one.call("handshake_stdio__elicit")
        assert busy.asked == one.asked == []
        waiting.cancel()
        await until(lambda: states(gateway, key)[-1] == "unknown", "the end of the other call")


@pytest.mark.parametrize("client", ERAS)
async def test_a_change_told_to_a_caller_without_capabilities_is_heard_too(gateway, client):
    key = new_key()
    async with agent(gateway, client, can_answer=False) as one:
        async with one.list_change():
            await one.call("handshake_http__grow", key=key)
        assert f"handshake_http__{key}" in await one.tools()

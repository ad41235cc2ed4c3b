"""Every feature that the two protocol eras do differently, for each pair of eras and each transport to the server."""

import asyncio
import gzip
from base64 import b64decode
from itertools import product

import pytest
from tests.eras.era_agents import agent, cancel, new_key, noted, states, text
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
ERAS = ("handshake", "modern")
TRANSPORTS = ("http", "stdio")


def cells(*axes):
    rows = [pytest.param(*row, id="-".join(row)) for row in product(*axes)]
    return pytest.mark.parametrize(("client", "server", "transport"), rows)


PAIRS = cells(ERAS, ERAS, TRANSPORTS)
REAL = cells(ERAS, ("all",), TRANSPORTS)


@PAIRS
async def test_the_answer_of_the_clients_model_reaches_the_servers_result(gateway, client, server, transport):
    async with agent(gateway, client) as one:
        result = await one.call(f"{server}_{transport}__sample")
        assert text(result) == "the model says Paris"
        assert one.asked == ["What is the capital of France?"]


@PAIRS
async def test_the_answer_of_the_clients_person_reaches_the_servers_result(
    gateway, client, server, transport
):
    async with agent(gateway, client) as one:
        result = await one.call(f"{server}_{transport}__elicit")
        assert text(result) == "hello Ada"
        assert one.asked == ["Who are you?"]


@PAIRS
async def test_progress_arrives_in_order_and_before_the_result(gateway, client, server, transport):
    async with agent(gateway, client) as one:
        result = await one.call(f"{server}_{transport}__steps")
        assert text(result) == "all steps done"
        assert one.progress == [(step, 4, f"step {step}") for step in (1, 2, 3, 4)]


@PAIRS
async def test_a_cancelled_call_is_cancelled_at_the_server_and_its_outcome_is_unknown(
    gateway, client, server, transport
):
    key = new_key()
    async with agent(gateway, client) as one:
        call = asyncio.create_task(one.call(f"{server}_{transport}__wait", key=key))
        await until(lambda: noted(gateway, "began", key), "the call's start")
        await cancel(gateway, call, key)
        assert await until(lambda: states(gateway, key)[-1] == "unknown", "the outcome in the record")


@PAIRS
async def test_a_tool_that_the_server_adds_is_listed_after_a_change_notice(
    gateway, client, server, transport
):
    key = new_key()
    async with agent(gateway, client) as one:
        added = f"{server}_{transport}__{key}"
        assert added not in await one.tools()
        async with one.list_change():
            await one.call(f"{server}_{transport}__grow", key=key)
        assert added in await one.tools()
        assert text(await one.call(added)) == "a tool that was added"


@REAL
async def test_server_everything_gets_the_answer_of_the_clients_model(gateway, client, server, transport):
    async with agent(gateway, client) as one:
        result = await one.call(f"{server}_{transport}__trigger_sampling_request", prompt="Capital?")
        assert "Paris" in text(result)
        assert len(one.asked) == 1
        assert "Capital?" in one.asked[0]


@REAL
async def test_server_everything_gets_the_answer_of_the_clients_person(gateway, client, server, transport):
    async with agent(gateway, client) as one:
        result = await one.call(f"{server}_{transport}__trigger_elicitation_request")
        assert "Ada" in text(result)


@REAL
async def test_progress_of_server_everything_arrives_in_order(gateway, client, server, transport):
    async with agent(gateway, client) as one:
        arguments = {"duration": 0.4, "steps": 4}
        await one.call(f"{server}_{transport}__trigger_long_running_operation", **arguments)
        assert [progress for progress, _, _ in one.progress] == [1, 2, 3, 4]


@REAL
async def test_tools_that_server_everything_adds_after_its_start_are_listed(
    gateway, client, server, transport
):
    async with agent(gateway, client) as one:
        assert f"{server}_{transport}__get_roots_list" in await one.tools()


@REAL
async def test_a_resource_that_a_result_of_server_everything_links_to_is_read_at_once(
    gateway, client, server, transport
):
    async with agent(gateway, client) as one:
        wanted = {
            "name": f"{new_key()}.gz",
            "data": "data:text/plain,hello",
            "outputType": "resourceLink",
        }
        result = await one.call(f"{server}_{transport}__gzip_file_as_resource", **wanted)
        [link] = result.content
        [found] = (await one.client.read_resource(link.uri)).contents
        assert gzip.decompress(b64decode(found.blob)) == b"hello"

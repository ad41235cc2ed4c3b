"""The eras behind `tool_execute`: a tool that is called by its id asks and tells as if it were called directly."""

import asyncio
from itertools import product

import pytest
from tests.eras.era_agents import agent, cancel, new_key, noted, states, text
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
ERAS = ("handshake", "modern")
CELLS = pytest.mark.parametrize(
    ("mode", "client", "server"),
    [pytest.param(*row, id="-".join(row)) for row in product(("gateway", "proxy"), ERAS, ERAS)],
)


@CELLS
async def test_the_answers_of_model_and_person_reach_the_result(gateway, mode, client, server):
    async with agent(gateway, client, f"/{mode}") as one:
        assert "the model says Paris" in text(await one.execute(f"{server}_http:sample"))
        assert "hello Ada" in text(await one.execute(f"{server}_stdio:elicit"))
        assert one.asked == ["What is the capital of France?", "Who are you?"]


@CELLS
async def test_progress_arrives_in_order(gateway, mode, client, server):
    async with agent(gateway, client, f"/{mode}") as one:
        assert "all steps done" in text(await one.execute(f"{server}_http:steps"))
        assert [progress for progress, _, _ in one.progress] == [1, 2, 3, 4]


@CELLS
async def test_a_cancelled_call_is_cancelled_at_the_server(gateway, mode, client, server):
    key = new_key()
    async with agent(gateway, client, f"/{mode}") as one:
        call = asyncio.create_task(one.execute(f"{server}_http:wait", key=key))
        await until(lambda: noted(gateway, "began", key), "the call's start")
        await cancel(gateway, call, key)
        assert await until(lambda: states(gateway, key)[-1] == "unknown", "the outcome in the record")


@CELLS
async def test_a_call_with_its_idempotency_key_runs_once(gateway, mode, client, server):
    key = new_key()
    async with agent(gateway, client, f"/{mode}") as one:
        for _ in range(2):
            meta = {"agent-gate/idempotency-key": key}
            assert "grown" in text(await one.execute(f"{server}_http:grow", meta=meta, key=key))
        assert noted(gateway, "grown", key) == 1


@pytest.mark.parametrize("client", ERAS)
async def test_an_image_of_server_everything_is_seen_in_gateway_mode_by_viewing_its_part(gateway, client):
    async with agent(gateway, client, "/full") as one:
        [image] = [p for p in (await one.call("all_stdio__get_tiny_image")).content if p.type == "image"]
    async with agent(gateway, client, "/gateway") as one:
        result = await one.execute("all_stdio:get-tiny-image")
        assert "image image/png, about 4 kB, part 1" in text(result)
        [artifact], [selector] = (result.structured_content[name] for name in ("artifacts", "views"))
        wanted = {"handle": artifact["handle"], "selector": selector}
        [seen] = (await one.client.call_tool("tool_view", wanted)).content
        assert (seen.type, seen.mime_type, seen.data) == ("image", "image/png", image.data)

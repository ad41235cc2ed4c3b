"""What a server says while a call runs reaches its caller through the process that holds the server's program, on
whichever worker each of the caller's requests arrives."""

import asyncio
import json
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from tests.eras.era_agents import agent, new_key, noted, text
from tests.gateway import TOKEN, running
from tests.postgres import server as postgres
from tests.waiting import until, wait_until

pytestmark = pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
SERVER = Path(__file__).parents[1] / "eras" / "era_server.py"
ERAS = ("handshake", "modern")
PAIRS = pytest.mark.parametrize(
    ("client", "server"), [pytest.param(*row, id="-".join(row)) for row in product(ERAS, ERAS)]
)
OFTEN = 6
"""Each connection comes to either worker."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("talking")
    servers = {
        era: {"command": sys.executable, "args": [str(SERVER), era, str(folder), "stdio"]} for era in ERAS
    }
    config = {
        "gateway": {"id": "pair", "port": 0},
        "admin": {"port": 0, "socket": "./data/admin.sock"},
        "agent": {"token": TOKEN, "rate_limit": {"max_requests_per_minute": 0}},
        "servers": servers,
        "storage": {"type": "postgres", "url": postgres().new_database()},
        "permissions": "permissions.yaml",
    }
    files = {
        "config.yaml": json.dumps(config),
        "permissions.yaml": "defaults: [{pattern: '*', action: allow}]",
    }
    with running(folder, files, "--insecure", "--workers", "2") as gateway:

        def both_serve():
            steps = [gateway.call(f"{era}__steps").status for era in ERAS for _ in range(8)]
            return set(steps) == {200}

        wait_until(both_serve, "both workers with both servers")
        yield gateway


@PAIRS
async def test_progress_and_questions_reach_the_caller_and_its_answers_the_server(pair, client, server):
    for _ in range(OFTEN):
        async with agent(pair, client) as one:
            assert text(await one.call(f"{server}__steps")) == "all steps done"
            assert one.progress == [(step, 4, f"step {step}") for step in (1, 2, 3, 4)]
            assert text(await one.call(f"{server}__elicit")) == "hello Ada"
            assert text(await one.call(f"{server}__sample")) == "the model says Paris"
            assert one.asked == ["Who are you?", "What is the capital of France?"]


@PAIRS
async def test_a_call_that_is_cancelled_is_cancelled_at_the_server(pair, client, server):
    key = new_key()
    for times in range(1, OFTEN + 1):
        async with agent(pair, client) as one:
            call = asyncio.create_task(one.call(f"{server}__wait", key=key))
            await until(lambda times=times: noted(pair, "began", key) == times, "the call's start")
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
            assert await until(lambda times=times: noted(pair, "cancelled", key) == times, "its cancellation")

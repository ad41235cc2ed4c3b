"""Each test is one coroutine with a deadline, on the product's own event loop."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
import uvloop
from tests.surfaces.mcp.mcp_client import Run


@pytest.fixture
def run() -> Run:
    async def bounded(main: Coroutine[Any, Any, Any]) -> Any:
        async with asyncio.timeout(30):
            return await main

    return lambda main: uvloop.run(bounded(main))

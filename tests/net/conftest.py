"""Every test of the rim runs on both event loops: the product's own and the standard one."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=["uvloop", "asyncio"])
def run(request: pytest.FixtureRequest) -> Run:
    runner = uvloop.run if request.param == "uvloop" else asyncio.run

    async def bounded(main: Coroutine[Any, Any, Any]) -> Any:
        async with asyncio.timeout(20):
            return await main

    return lambda main: runner(bounded(main))

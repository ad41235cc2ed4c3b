"""A plugin source by the name of its class, and a loop with a deadline."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop
from tests.sources.plugin.plugin_parts import Make, config_of
from tests.toolboxes import toolbox

from agent_gate.net.pool import Pool
from agent_gate.sources.plugin import PluginSource
from agent_gate.sources.plugin.loading import load_handler


@pytest.fixture
def make() -> Make:
    def make(name: str, **given: Any) -> PluginSource:
        config = config_of(name, **given)
        return PluginSource(config, load_handler(config), toolbox(Pool()))

    return make


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    async def bounded(main: Coroutine[Any, Any, Any]) -> Any:
        async with asyncio.timeout(20):
            return await main

    return lambda main: uvloop.run(bounded(main))

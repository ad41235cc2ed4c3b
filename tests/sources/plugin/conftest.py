"""A plugin source by the name of its class."""

from typing import Any

import pytest
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

"""Browsing a tool's own path shows its whole schema, whatever its size."""

import json
import re

from tests.calls.small_calls import ANNA, SmallCalls, opened, told

from agent_gate.calls.meta import MetaTools
from agent_gate.core.catalog import Listing, build
from agent_gate.core.tool import Definition
from agent_gate.discovery.meta import BrowseArgs, ViewArgs
from agent_gate.discovery.tokens import count, fits
from agent_gate.results.views import VIEW_BUDGET

SMALL = {"type": "object", "properties": {"at": {"type": "object", "properties": {"x": {"type": "number"}}}}}
LARGE = {"type": "object", "properties": {f"argument_{n}": {"type": "string", "description": "words " * 20} for n in range(200)}}  # fmt: skip


def test_the_schema_of_a_tool_is_at_its_path_and_a_large_one_behind_a_handle(tmp_path):
    async def story():
        async with opened(tmp_path) as store:
            gate = SmallCalls(store)
            tools = [
                Definition(name="small", input_schema=SMALL),
                Definition(name="large", input_schema=LARGE),
            ]
            gate.shelf.swap(build([Listing(key="lab", namespace="lab", definitions=tools)]))
            known = gate.shelf.catalog.tools
            meta = MetaTools(gate.calls, gate.shelf, lambda _caller: known, gate.artifacts, fits)
            small = meta.browse(ANNA, BrowseArgs(path="/lab/small"))
            assert json.loads(small.text.splitlines()[1])["inputSchema"] == SMALL
            assert "inputSchema" not in meta.browse(ANNA, BrowseArgs(path="/lab")).text
            large = meta.browse(ANNA, BrowseArgs(path="/lab/large"))
            assert count(large.text) < 2 * VIEW_BUDGET
            [handle] = re.findall(r"result:[0-9a-f]{32}", large.text)
            await store.flush()
            look = ViewArgs(
                handle=handle, selector={"type": "jsonpath", "path": "$.inputSchema.properties.argument_199"}
            )
            assert json.loads((await meta.view(ANNA, look)).text) == LARGE["properties"]["argument_199"]
            meta._readers.close()

    told(story)

"""Browsing a tool's own path shows its whole schema, whatever its size."""

import json
import re

from tests.calls.small_calls import ANNA, SmallCalls, opened

from agent_gate.calls.meta import MetaTools
from agent_gate.core.call import Caller, Result, State
from agent_gate.core.catalog import Listing, build
from agent_gate.core.tool import Definition
from agent_gate.discovery.cards import BREAKPOINT
from agent_gate.discovery.meta import BrowseArgs, ExecuteArgs, ViewArgs
from agent_gate.discovery.tokens import count, fits
from agent_gate.results.views import VIEW_BUDGET

SMALL = {"type": "object", "properties": {"at": {"type": "object", "properties": {"x": {"type": "number"}}}}}
LARGE = {"type": "object", "properties": {f"argument_{n}": {"type": "string", "description": "words " * 20} for n in range(200)}}  # fmt: skip


async def test_the_schema_of_a_tool_is_at_its_path_and_a_large_one_behind_a_handle(tmp_path):
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


async def test_a_tool_whose_name_is_too_long_for_a_card_can_still_be_called_by_its_id(tmp_path):
    async with opened(tmp_path) as store:
        gate = SmallCalls(store)
        tools = [Definition(name="Zq" * 50), Definition(name="ok")]
        gate.shelf.swap(build([Listing(key="lab", namespace="lab", definitions=tools)]))
        known = gate.shelf.catalog.tools
        long = next(tool for tool in known if tool.name != "ok")
        meta = MetaTools(gate.calls, gate.shelf, lambda _caller: known, gate.artifacts, fits)
        assert [card.name for card in meta.browse(ANNA, BrowseArgs(path="/lab")).cards] == ["ok"]
        outcome = await meta.execute(gate.call(), ExecuteArgs(tool_id=long.id), lambda run: run(5))
        assert outcome.state is State.COMPLETED


async def test_a_tool_counts_as_seen_once_it_ran_with_success(tmp_path):
    async def fails_first(_job):
        return Result(b"no", is_error=len(gates[0].jobs) == 1)

    gates = []
    async with opened(tmp_path) as store:
        gates.append(gate := SmallCalls(store, fails_first))
        tools = [Definition(name=name, description="Act on things.") for name in ("aaa", "act")]
        gate.shelf.swap(build([Listing(key="lab", namespace="lab", definitions=tools)]))
        known = gate.shelf.catalog.tools
        meta = MetaTools(gate.calls, gate.shelf, lambda _caller: known, gate.artifacts, fits)
        anna = Caller(name="anna", cache_stable=True, calls_per_minute=0)
        call, act = (
            gate.call(caller=anna, session="s"),
            next(tool for tool in known if tool.name == "act"),
        )
        args = ExecuteArgs(tool_id=act.id)
        assert (await meta.execute(call, args, lambda run: run(5))).state is State.FAILED
        assert not meta._session(anna, "s").seen
        again = gate.call(caller=anna, session="s")
        assert (await meta.execute(again, args, lambda run: run(5))).state is State.COMPLETED
        cards = meta.browse(anna, BrowseArgs(path="/lab"), "s").cards
        assert [card.id for card in cards][:2] == [act.id, BREAKPOINT]

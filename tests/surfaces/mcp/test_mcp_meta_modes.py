"""Calls in `proxy` mode: what is refused is on record, and who waits for a person is told so."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.surfaces.mcp.mcp_client import client_of, encode, text_of
from tests.surfaces.mcp.mcp_small import ASK, Cupboard, SmallGate, caller, small_gate
from tests.waiting import PATIENCE

from agent_gate.calls.meta import MetaTools
from agent_gate.core.call import Caller
from agent_gate.discovery.cards import BREAKPOINT
from agent_gate.discovery.semantic import Semantic, Space
from agent_gate.discovery.tokens import fits
from agent_gate.results.artifacts import Artifacts
from agent_gate.surfaces.mcp.modes.meta import MetaMode

Load = Callable[[], Semantic | None]


def lab() -> Cupboard:
    source = Cupboard()
    source.tool("get")
    source.tool("deploy", input_schema={"type": "object", "properties": {"env": {}, "dryRun": {}}})
    return source


@asynccontextmanager
async def proxy_gate(
    folder: Path, anna: Caller | None = None, semantic: Load = lambda: None, **options: Any
) -> AsyncIterator[SmallGate]:
    callers = (anna or caller("anna", mode="proxy"), caller("bert"))
    async with small_gate(folder, lab(), callers=callers, **options) as gate:
        artifacts = Artifacts(gate.store, gate.clock, 3600)
        meta = MetaTools(gate.calls, gate.shelf, gate.view.tools, artifacts, fits, semantic)
        gate.surface.modes["proxy"] = MetaMode("proxy", meta, gate.calls, 20.0)
        yield gate


async def refusals(gate: SmallGate) -> list[tuple[str, str]]:
    await gate.store.flush()
    found = await gate.store.read(
        "SELECT state, json_extract(body, '$.asked'), json_extract(body, '$.error.code') FROM record ORDER BY seq"
    )
    assert {row[0] for row in found} <= {"refused"}
    return [(row[1], row[2]) for row in found]


@pytest.mark.parametrize(
    ("name", "arguments", "asked"),
    [
        ("lab__get", {"x": 1}, "lab__get"),
        ("no_such_tool", {}, "no_such_tool"),
        ("tool_execute", {"args": {}}, "tool_execute"),
        ("tool_execute", {"tool_id": "lab__deploy", "args": {"dry_run": True}}, "lab__deploy"),
        ("tool_execute", {"tool_id": "lab__get", "args": {"x": "result:" + "0" * 32}}, "lab__get"),
    ],
)
async def test_a_call_that_is_refused_before_it_runs_leaves_a_row(
    tmp_path: Path, name: str, arguments: dict[str, Any], asked: str
) -> None:
    async with proxy_gate(tmp_path) as gate, client_of(gate) as client:
        assert (await client.call(name, **arguments)).result["isError"] is True
        [(said, code)] = await refusals(gate)
        assert said == asked
        assert code in ("INVALID_ARGS", "VIEW_FAILED")


async def test_a_look_that_fails_is_no_call_and_leaves_none(tmp_path: Path) -> None:
    async with proxy_gate(tmp_path) as gate, client_of(gate) as client:
        assert (await client.call("tool_hydrate", tool_id="nothing")).result["isError"] is True
        assert await refusals(gate) == []


async def test_refused_calls_count_against_the_quota(tmp_path: Path) -> None:
    anna = Caller(name="anna", mode="proxy", calls_per_minute=2)
    async with proxy_gate(tmp_path, anna) as gate, client_of(gate) as client:
        codes = [(await client.call("lab__get")).result["structuredContent"]["error"] for _ in range(4)]
        assert codes == ["ARGS_INVALID", "ARGS_INVALID", "RATE_LIMITED", "RATE_LIMITED"]
        assert len(await refusals(gate)) == 2


async def test_a_call_through_tool_execute_shows_signs_of_life_while_a_person_is_asked(
    tmp_path: Path,
) -> None:
    async with (
        proxy_gate(tmp_path, rules=ASK, hold=20.0, beat=0.02) as gate,
        client_of(gate) as client,
    ):
        wanted = {"tool_id": "lab__get", "args": {"x": 1}}
        asking = asyncio.create_task(client.call("tool_execute", {"progressToken": "t"}, **wanted))
        await gate.approval()
        reply = await asking
        beats = [await reply.event() for _ in range(2)]
        assert [beat["method"] for beat in beats] == ["notifications/progress"] * 2
        assert beats[0]["params"]["progress"] < beats[1]["params"]["progress"]
        await gate.approve()
        assert "content" in (await reply.events())[-1]["result"]


async def test_a_call_that_waits_for_a_person_names_a_tool_that_the_mode_lists(tmp_path: Path) -> None:
    async with proxy_gate(tmp_path, rules=ASK, hold=0.05) as gate, client_of(gate) as client:
        waiting = (await client.call("tool_execute", tool_id="lab__get", args={"x": 1})).result
        _, _, after = text_of(waiting).partition("call tool_view with ")
        wanted, _ = json.JSONDecoder().raw_decode(after)
        assert "tool_view" in [tool["name"] for tool in (await client.ask("tools/list")).result["tools"]]
        await gate.approve_and_wait()
        seen = (await client.call("tool_view", **wanted)).result
        assert json.loads(text_of(seen)) == {"x": 1}


class Nowhere:
    def similarities(self, query: str) -> Sequence[float]:
        return [0.0]


class Slow:
    """An encoder that is at work for as long as the test wants."""

    def __init__(self) -> None:
        self.begun, self.goes_on = Event(), Event()

    def place(self, texts: Sequence[str]) -> Space:
        self.begun.set()
        assert self.goes_on.wait(PATIENCE)
        return Nowhere()


async def test_nobody_waits_for_tools_to_be_placed_by_meaning(tmp_path: Path) -> None:
    slow = Slow()
    try:
        async with proxy_gate(tmp_path, semantic=lambda: slow) as gate, client_of(gate) as client:
            listed = (await client.ask("tools/list")).result["tools"]
            assert await asyncio.to_thread(slow.begun.wait, PATIENCE)
            assert "lab__get" in [tool["name"] for tool in listed]
            async with asyncio.timeout(PATIENCE):
                await gate.calls.drain(10 * PATIENCE)
    finally:
        slow.goes_on.set()


@pytest.mark.parametrize(
    "asked", [{"path": "/"}, {"path": "/lab"}, {"query": "get things"}, {"query": "get", "path": "/lab"}]
)
async def test_what_a_browse_says_to_programs_is_no_larger_than_its_text(
    tmp_path: Path, asked: dict[str, str]
) -> None:
    async with proxy_gate(tmp_path) as gate, client_of(gate, path="/mcp/gateway") as client:
        artifacts = Artifacts(gate.store, gate.clock, 3600)
        meta = MetaTools(gate.calls, gate.shelf, gate.view.tools, artifacts, fits)
        gate.surface.modes["gateway"] = MetaMode("gateway", meta, gate.calls, 20.0)
        found = (await client.call("tool_browse", **asked)).result
        assert (
            len(encode(found.get("structuredContent", ""))) <= len(found["content"][0]["text"].encode()) + 2
        )


@pytest.mark.parametrize("tool", ["tool_hydrate", "tool_execute"])
async def test_a_name_without_its_server_is_answered_with_the_whole_one(tmp_path: Path, tool: str) -> None:
    async with proxy_gate(tmp_path) as gate, client_of(gate) as client:
        said = (await client.call(tool, tool_id="get")).result["structuredContent"]
        assert said["error"] == "HYDRATE_FAILED"
        assert "lab:get" in said["message"]


async def test_a_client_without_a_session_is_known_again_by_the_key_it_passes(tmp_path: Path) -> None:
    anna = caller("anna", mode="gateway", cache_stable=True)
    source = lab()
    source.tool("act")
    async with (
        small_gate(tmp_path, source, callers=(anna, caller("bert"))) as gate,
        client_of(gate) as client,
    ):
        artifacts = Artifacts(gate.store, gate.clock, 3600)
        meta = MetaTools(gate.calls, gate.shelf, gate.view.tools, artifacts, fits)
        gate.surface.modes["gateway"] = MetaMode("gateway", meta, gate.calls, 20.0)

        async def shown(path: str, session: str) -> str:
            asked = {"name": "tool_browse", "arguments": {"path": path}}
            return text_of((await client.modern("tools/call", {"Agent-Session": session}, **asked)).result)

        assert BREAKPOINT not in await shown("/lab/get", "one")
        assert BREAKPOINT in await shown("/lab", "one")
        assert BREAKPOINT not in await shown("/lab", "two")

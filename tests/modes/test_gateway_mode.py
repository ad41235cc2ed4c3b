"""An agent behind `/mcp/gateway`: it finds, calls and reads tools of real servers with nothing but the meta-tools."""

import asyncio
import json
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from tests.gateway import OTHER_TOKEN, TOKEN, running
from tests.servers import command
from tests.waiting import PATIENCE, until, wait_until

PERMISSIONS = """
rules:
  - {pattern: "files__move_file*", action: deny}
  - {pattern: "files__read_*", action: allow}
  - {pattern: "files__list_*", action: allow}
  - {namespace: time, action: allow}
  - {namespace: notes, action: allow}
"""


def entry(argv, **more):
    return {"command": argv[0], "args": argv[1:], **more}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("modes")
    room = made / "room"
    room.mkdir()
    (room / "big.json").write_text(
        json.dumps({"items": [{"n": n, "name": f"thing {n}", "note": "x" * 40} for n in range(2000)]})
    )
    (room / "todo.txt").write_text("water the plants\n")
    return made


@pytest.fixture(scope="module")
def gateway(folder):
    config = {
        "gateway": {"id": "t", "port": 0},
        "admin": {"port": 0, "socket": "./data/admin.sock"},
        "agents": {
            "a": {"token": TOKEN, "rate_limit": {"max_requests_per_minute": 0}},
            "stable": {
                "token": OTHER_TOKEN,
                "mode": "gateway",
                "cache_stable": True,
                "rate_limit": {"max_requests_per_minute": 0},
            },
        },
        "mcpServers": {
            "time": entry(command("time")),
            "files": entry([*command("filesystem"), str(folder / "room")]),
            "notes": entry(command("memory"), env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}),
        },
        "limits": {"hold": 0.2},
        "permissions": "permissions.yaml",
    }
    files = {"config.yaml": json.dumps(config), "permissions.yaml": PERMISSIONS}
    with running(folder, files, "--insecure") as started:
        wait_until(lambda: started.request("GET", "/ready", token=None).status == 200)
        yield started


@asynccontextmanager
async def client(gateway, mode, *, era="auto", token=TOKEN):
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as http,
        Client(
            streamable_http_client(f"{gateway.url}/mcp{mode}", http_client=http), mode=era, cache=None
        ) as made,
    ):
        yield made


def text(result):
    return "\n".join(part.text for part in result.content if part.type == "text")


ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])


@ERAS
async def test_exactly_three_meta_tools_are_listed(gateway, era):
    async with client(gateway, "/gateway", era=era) as agent:
        assert [tool.name for tool in (await agent.list_tools()).tools] == [
            "tool_browse",
            "tool_execute",
            "tool_view",
        ]


async def test_a_namespace_is_introduced_with_the_words_of_its_server(gateway):
    async with client(gateway, "/gateway") as agent:
        found = await agent.call_tool("tool_browse", {"path": "/"})
        [said] = [line for line in text(found).splitlines() if line.startswith("/time ")]
        assert said.endswith(". mcp-time")


@ERAS
async def test_a_five_step_task_through_three_servers_with_nothing_but_the_meta_tools(gateway, folder, era):
    async with client(gateway, "/gateway", era=era) as agent:

        async def find(query, wanted):
            found = await agent.call_tool("tool_browse", {"query": query})
            ids = [card["id"] for card in found.structured_content["cards"]]
            assert any(ident.startswith((f"{wanted}#", f"{wanted}@")) for ident in ids[:5]), ids
            return next(ident for ident in ids if ident.startswith(wanted))

        async def execute(tool_id, **args):
            return await agent.call_tool("tool_execute", {"tool_id": tool_id, "args": args})

        now = await execute(
            await find("what time is it in Tokyo", "time:get_current_time"), timezone="Asia/Tokyo"
        )
        assert "Asia/Tokyo" in text(now)
        listed = await execute(
            await find("list the files in a folder", "files:list_directory"), path=str(folder / "room")
        )
        assert "todo.txt" in text(listed)
        read = await execute(
            await find("read a text file", "files:read_text_file"), path=str(folder / "room" / "big.json")
        )
        envelope = read.structured_content
        assert envelope["status"] == "partial"
        handle = envelope["artifacts"][0]["handle"]
        assert len(text(read)) < 4000
        seen = await agent.call_tool(
            "tool_view", {"handle": handle, "selector": {"type": "grep", "pattern": "thing 1234"}}
        )
        assert "thing 1234" in text(seen)
        made = await execute(
            await find("remember facts about a person as entities", "notes:create_entities"),
            entities=[{"name": f"Anna {era}", "entityType": "person", "observations": ["likes tea"]}],
        )
        assert not made.is_error
        again = await execute(await find("search the knowledge graph", "notes:search_nodes"), query="Anna")
        assert "likes tea" in text(again)


@ERAS
async def test_errors_of_meta_tools_have_one_shape_also_for_malformed_arguments(gateway, era):
    async with client(gateway, "/gateway", era=era) as agent:
        for name, arguments, code in [
            ("tool_browse", {}, "ARGS_INVALID"),
            ("tool_browse", {"query": "x", "path": "//x"}, "PATH_INVALID"),
            ("tool_browse", {"query": 7}, "ARGS_INVALID"),
            ("tool_browse", {"path": "//x"}, "PATH_INVALID"),
            ("tool_browse", {"path": "/nowhere"}, "PATH_NOT_FOUND"),
            ("tool_execute", {"tool_id": "files:nothing"}, "HYDRATE_FAILED"),
            ("tool_execute", {"tool_id": "time:get_current_time", "args": {}}, "ARGS_INVALID"),
            (
                "tool_execute",
                {"tool_id": "files:move_file", "args": {"source": "a", "destination": "b"}},
                "FORBIDDEN",
            ),
            ("tool_view", {"handle": "result:" + "0" * 32, "selector": {"type": "head"}}, "VIEW_FAILED"),
            ("tool_view", {"handle": "x", "selector": {"type": "head"}}, "VIEW_FAILED"),
            ("time__get_current_time", {"timezone": "UTC"}, "ARGS_INVALID"),
        ]:
            result = await agent.call_tool(name, arguments)
            said = json.loads(text(result))
            assert result.is_error, (name, arguments)
            assert said["error"] == code, said
            assert set(said) <= {"error", "message", "path", "retryable", "details"}


async def test_a_denied_tool_is_found_by_no_query_and_listed_in_no_mode(gateway):
    async with client(gateway, "/gateway") as agent:
        for query in ("move a file", "rename or move files and directories", "move_file"):
            found = await agent.call_tool("tool_browse", {"query": query, "top_k": 50})
            assert not [card for card in found.structured_content["cards"] if "move_file" in card["id"]]
    for mode in ("/full", "/proxy"):
        async with client(gateway, mode) as agent:
            assert not [tool for tool in (await agent.list_tools()).tools if "move_file" in tool.name]


async def test_a_card_carries_no_schema_in_any_form(gateway):
    async with client(gateway, "/gateway") as agent:
        found = await agent.call_tool("tool_browse", {"query": "file", "top_k": 50})
        allowed = {
            "id",
            "name",
            "description",
            "tags",
            "kind",
            "namespace",
            "has_schema",
            "score",
            "cost_hint",
            "side_effects",
        }
        for card in found.structured_content["cards"]:
            assert set(card) <= allowed
            assert "inputSchema" not in json.dumps(card)


async def test_a_large_result_is_passed_on_by_its_handle_without_being_read(gateway, folder):
    async with client(gateway, "/gateway") as agent:
        read = await agent.call_tool(
            "tool_execute",
            {"tool_id": "files:read_text_file", "args": {"path": str(folder / "room" / "big.json")}},
        )
        handle = read.structured_content["artifacts"][0]["handle"]
        sent = asyncio.create_task(
            agent.call_tool(
                "tool_execute",
                {
                    "tool_id": "files:write_file",
                    "args": {"path": str(folder / "room" / "copy.json"), "content": handle},
                },
            )
        )
        await until(lambda: gateway.admin.get("/api/approvals"))
        await asyncio.to_thread(gateway.answer, "approve")
        await sent
        await until((folder / "room" / "copy.json").exists)
    assert (folder / "room" / "copy.json").read_text() == (folder / "room" / "big.json").read_text()


async def test_another_agents_handle_is_like_one_that_never_was(gateway, folder):
    async with client(gateway, "/gateway") as agent, client(gateway, "", token=OTHER_TOKEN) as other:
        read = await agent.call_tool(
            "tool_execute",
            {"tool_id": "files:read_text_file", "args": {"path": str(folder / "room" / "big.json")}},
        )
        handle = read.structured_content["artifacts"][0]["handle"]
        foreign = await other.call_tool("tool_view", {"handle": handle, "selector": {"type": "head"}})
        unknown = await other.call_tool(
            "tool_view", {"handle": "result:" + "0" * 32, "selector": {"type": "head"}}
        )
        assert text(foreign).replace(handle, "") == text(unknown).replace("result:" + "0" * 32, "")


async def test_a_cache_stable_caller_sees_what_it_saw_before_in_front_and_unchanged(gateway):
    async with client(gateway, "", token=OTHER_TOKEN, era="legacy") as agent:
        assert len((await agent.list_tools()).tools) == 3
        first = (await agent.call_tool("tool_browse", {"query": "time zone", "top_k": 2})).structured_content[
            "cards"
        ]
        second = (
            await agent.call_tool("tool_browse", {"query": "time zone and read a file", "top_k": 8})
        ).structured_content["cards"]
        ids = [card["id"] for card in second]
        assert "__cache_breakpoint__" in ids
        before = second[: ids.index("__cache_breakpoint__")]
        known = {card["id"]: card for card in first}
        assert [card["id"] for card in before] == sorted(card["id"] for card in before)
        assert all(card == known[card["id"]] for card in before if card["id"] in known)


@ERAS
async def test_proxy_mode_shows_every_tool_stripped_and_runs_them_by_tool_execute(gateway, era):
    async with client(gateway, "/proxy", era=era) as agent:
        tools = (await agent.list_tools()).tools
        names = [tool.name for tool in tools]
        assert names[-3:] == ["tool_hydrate", "tool_execute", "tool_view"]
        assert all(tool.input_schema == {"type": "object"} for tool in tools[:-3])
        hydrated = await agent.call_tool("tool_hydrate", {"tool_id": "time__get_current_time"})
        assert "timezone" in hydrated.structured_content["inputSchema"]["properties"]
        result = await agent.call_tool(
            "tool_execute", {"tool_id": "time__get_current_time", "args": {"timezone": "UTC"}}
        )
        assert "UTC" in text(result)


async def test_a_meta_tool_of_the_other_mode_is_answered_with_those_of_this_one(gateway):
    async with client(gateway, "/gateway") as agent:
        said = text(await agent.call_tool("tool_hydrate", {"tool_id": "time__get_current_time"}))
        assert "no tool_hydrate in gateway mode. Use tool_browse, tool_execute, tool_view" in said
        said = text(await agent.call_tool("time__get_current_time", {"timezone": "UTC"}))
        assert "Use tool_execute with its tool_id" in said


async def test_an_unknown_tool_in_full_mode_is_a_protocol_error(gateway):
    async with client(gateway, "/full") as agent:
        with pytest.raises(MCPError):
            await agent.call_tool("files__nothing", {})

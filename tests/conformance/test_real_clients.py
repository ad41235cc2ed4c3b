"""Clients that other people wrote, listing and calling through the gateway with their own token."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.conformance.node_packages import CACHE, installed, node
from tests.surfaces.mcp.mcp_gate import ALLOW_ALL, TOKEN, Gate, config_text, fixture_over_stdio, running_gate
from tests.waiting import PATIENCE, until

from agent_gate.core.approval import Answer
from agent_gate.net.http import Request

TEXT = "This is a simple text response for testing."
TS_CLIENT = Path(__file__).parent / "ts_client.mjs"


@asynccontextmanager
async def gate_in(folder: Path, permissions: str = ALLOW_ALL, **settings: Any) -> AsyncIterator[Gate]:
    """A gateway with the server of every feature behind it, for as long as any of these clients may take."""
    config = config_text(fixture_over_stdio(), **settings)
    async with asyncio.timeout(90), running_gate(folder, config, permissions) as gate:
        yield gate


async def output(*argv: str, folder: Path, **environment: str) -> str:
    """What a program printed; its own words are the failure's message."""
    home = {
        "HOME": str(folder),
        "PATH": f"{Path(node()).parent}:/usr/bin:/bin",
        "NO_COLOR": "1",
        **environment,
    }
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=home
    )
    printed, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode() + printed.decode()
    return printed.decode()


@pytest.mark.slow
async def test_the_python_client_lists_calls_and_reads_in_both_eras(tmp_path: Path) -> None:
    async def use_in(gate: Gate, mode: str, era: str) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(gate.url, http_client=http)
            async with Client(transport, mode=mode) as client:
                assert client.protocol_version == era
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert names[-1] == "gate_result"
                assert "test_simple_text" in names
                result: Any = await client.call_tool("test_simple_text", {})
                assert result.content[0].text == TEXT
                read: Any = await client.read_resource("test://static-text")
                assert read.contents[0].text.startswith("This is the content")
                prompt: Any = await client.get_prompt("test_simple_prompt")
                assert prompt.messages[0].content.text.startswith("This is a simple prompt")

    async with gate_in(tmp_path) as gate:
        await use_in(gate, "legacy", "2025-11-25")
        await use_in(gate, "auto", "2026-07-28")


@pytest.mark.slow
async def test_the_official_clients_wait_for_a_person_by_coming_back(tmp_path: Path) -> None:
    """The hold is short, and the person answers only once the client has come back."""

    async def approve(gate: Gate, came_back: asyncio.Event) -> None:
        await came_back.wait()
        answer = Answer(verdict="approve", person="operator", channel="test")
        await gate.gateway.calls.answer(gate.gateway.kept.inbox.open()[0].id, answer)

    def watch(came_back: asyncio.Event, handle: Any) -> Any:
        def watched(request: Request) -> Any:
            if b'"requestState"' in request.body:
                came_back.set()
            return handle(request)

        return watched

    async def with_python(gate: Gate) -> str:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
            transport = streamable_http_client(gate.url, http_client=http)
            async with Client(transport, mode="auto") as client:
                result: Any = await client.call_tool("test_simple_text", {})
                return str(result.content[0].text)

    async def with_typescript(gate: Gate) -> str:
        argv = (node(), str(TS_CLIENT), str(CACHE / "clients"), gate.url, TOKEN, "modern")
        found = json.loads(await output(*argv, folder=tmp_path))
        return str(found["result"]["content"][0]["text"])

    installed("clients")
    asking = (
        "defaults: [{pattern: '*', action: ask}]\n"
        "rules: [{pattern: '*__prompts/get(*)', action: allow}, {pattern: '*__resources/read(*)', action: allow}]\n"
    )
    async with gate_in(tmp_path, asking, limits={"hold": 0.3}) as gate:
        handle = gate.gateway.ways_in.mcp.handle
        for work in with_python, with_typescript:
            came_back = asyncio.Event()
            gate.gateway.ways_in.mcp.handle = watch(came_back, handle)  # type: ignore[method-assign]
            text, _ = await asyncio.gather(work(gate), approve(gate, came_back))
            assert text == TEXT


async def test_the_official_client_does_not_give_up_on_a_slow_person(tmp_path: Path) -> None:
    """It comes back ten times; before that it is told where the result will be."""
    asking = "defaults: [{pattern: '*', action: ask}]\n"
    async with (
        gate_in(tmp_path, asking, limits={"hold": 0.05}) as gate,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
        Client(streamable_http_client(gate.url, http_client=http), mode="2026-07-28") as client,
    ):
        waiting: Any = await client.call_tool("test_simple_text", {})
        ident = waiting.meta["agent-gate/pending"]["call"]
        assert f'gate_result with {{"id":"{ident}"}}' in waiting.content[0].text
        answer = Answer(verdict="approve", person="operator", channel="test")
        await gate.gateway.calls.answer(gate.gateway.kept.inbox.open()[0].id, answer)
        done: Any = await client.call_tool("gate_result", {"id": ident})
        assert done.content[0].text == TEXT


@pytest.mark.slow
async def test_the_typescript_clients_list_call_and_read_in_every_mode(tmp_path: Path) -> None:
    async def use_as(gate: Gate, kind: str) -> None:
        argv = (node(), str(TS_CLIENT), str(CACHE / "clients"), gate.url, TOKEN, kind)
        found = json.loads(await output(*argv, folder=tmp_path))
        assert found["tools"][-1] == "gate_result"
        assert found["result"]["content"][0]["text"] == TEXT
        assert len(found["resources"]) == 3
        assert found["prompt"]["messages"]

    installed("clients")
    async with gate_in(tmp_path) as gate:
        await asyncio.gather(*(use_as(gate, kind) for kind in ("sdk", "legacy", "auto", "modern")))


@pytest.mark.slow
async def test_the_inspector_lists_and_calls_in_both_eras(tmp_path: Path) -> None:
    async def use_in(gate: Gate, era: str) -> None:
        program = str(installed("clients") / ".bin" / "mcp-inspector")
        common = ("--cli", gate.url, "--transport", "http", "--protocol-era", era, "--format", "json", "-q")
        secret = ("--header", f"Authorization: Bearer {TOKEN}", "--stored-auth-only")
        quiet = {"MCP_INSPECTOR_SECRET_STORE": "memory"}
        listed = await output(
            node(), program, *common, *secret, "--method", "tools/list", folder=tmp_path, **quiet
        )
        assert "test_simple_text" in listed
        call = ("--method", "tools/call", "--tool-name", "test_simple_text")
        assert TEXT in await output(node(), program, *common, *secret, *call, folder=tmp_path, **quiet)

    installed("clients")
    async with gate_in(tmp_path) as gate:
        await asyncio.gather(*(use_in(gate, era) for era in ("legacy", "modern")))


@pytest.mark.slow
async def test_a_client_can_start_the_gateway_for_itself(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(config_text(fixture_over_stdio()))
    (tmp_path / "permissions.yaml").write_text(ALLOW_ALL)
    command = str(Path(sys.executable).with_name("agent-gate"))
    args = [
        "serve",
        "--stdio",
        "--agent",
        "tester",
        "--insecure",
        "--config",
        str(tmp_path / "config.yaml"),
    ]
    with (tmp_path / "log").open("w") as log:
        transport = stdio_client(StdioServerParameters(command=command, args=args), errlog=log)
        async with asyncio.timeout(PATIENCE), Client(transport, mode="auto", cache=None) as client:
            assert client.protocol_version == "2026-07-28"

            async def is_listed() -> bool:
                return "test_simple_text" in [tool.name for tool in (await client.list_tools()).tools]

            await until(is_listed)
            result: Any = await client.call_tool("test_simple_text", {})
            assert result.content[0].text == TEXT


@pytest.mark.slow
async def test_mcporter_lists_and_calls(tmp_path: Path) -> None:
    program = str(installed("clients") / ".bin" / "mcporter")
    async with gate_in(tmp_path) as gate:
        server = {"baseUrl": gate.url, "headers": {"Authorization": f"Bearer {TOKEN}"}}
        (tmp_path / "config").mkdir()
        config = tmp_path / "config" / "mcporter.json"
        config.write_text(json.dumps({"mcpServers": {"gate": server}, "imports": []}))
        listed = await output(node(), program, "list", "gate", "--json", folder=tmp_path)
        assert "test_simple_text" in listed
        called = await output(node(), program, "call", "gate.test_simple_text", folder=tmp_path)
        assert TEXT in called

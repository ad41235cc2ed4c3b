"""The bridge between real hosts and a server of the official library, in both eras."""

import asyncio
import json
import subprocess
import sys
import urllib.request

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.clients.hosting import BRIDGE, counterpart, modern, start_bridge
from tests.typescript.node_tools import installed, node, quiet_environment
from tests.waiting import PATIENCE, wait_until


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with counterpart(tmp_path_factory.mktemp("gateway")) as running:
        yield running


def host(gateway, **more):
    return stdio_client(StdioServerParameters(command=BRIDGE[0], args=[*BRIDGE[1:], gateway.url], **more))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
async def test_everything_passes_between_a_python_host_and_the_gateway(gateway, mode):
    seen = {"progress": [], "log": []}

    async def progressed(progress, total, message):
        seen["progress"].append((progress, total, message))

    async def logged(params):
        seen["log"].append(params.data)

    async def elicited(ctx, params):
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def sampled(ctx, params):
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(text="because"), model="m"
        )

    async with Client(
        host(gateway),
        mode=mode,
        logging_callback=logged,
        log_level="info",
        elicitation_callback=elicited,
        sampling_callback=sampled,
    ) as client:
        assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["echo", "progress"]
        result = await client.call_tool("echo", {"text": "ü", "list": [1, None]})
        assert result.content[0].text == "echo: {'text': 'ü', 'list': [1, None]}"
        await client.call_tool("progress", progress_callback=progressed)
        await client.call_tool("log")
        assert (await client.call_tool("elicit")).content[0].text == "hello Ada"
        if mode == "legacy":
            assert (await client.call_tool("sample")).content[0].text == "model: because"
        assert (await client.call_tool("mirror", {"region": "eu"})).content[
            0
        ].text == "mirror: {'region': 'eu'}"
        assert (await client.read_resource("note://one")).contents[0].text == "é note"
        prompt = await client.get_prompt("greet", {"who": "Bob"})
        assert prompt.messages[0].content.text == "Greet Bob"
    assert [step[0] for step in seen["progress"]] == [1, 2, 3]
    assert seen["log"] == ["a line"]


def test_schemas_pass_byte_for_byte(gateway):
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": modern()}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    direct = urllib.request.Request(f"{gateway.url}/mcp", json.dumps(message).encode(), headers)
    with urllib.request.urlopen(direct, timeout=PATIENCE) as answer:
        expected = answer.read()
    done = subprocess.run(
        [*BRIDGE, gateway.url],
        input=json.dumps(message).encode() + b"\n",
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.stdout.strip() == expected.strip()
    assert done.stderr == b""


async def test_a_changed_catalog_is_told_to_a_handshake_host(tmp_path):
    with counterpart(tmp_path) as gateway:
        bridge = await start_bridge(gateway.url)
        greeting = await bridge.greet()
        assert greeting["result"]["capabilities"]["tools"]["listChanged"] is True
        await asyncio.to_thread(
            wait_until,
            lambda: any(line.startswith("GET") for line in gateway.noted("requests")),
            "listening",
        )
        await bridge.send(id=1, method="tools/call", params={"name": "change"})
        await bridge.until(lambda line: line.get("method") == "notifications/tools/list_changed")
        await bridge.send(id=2, method="tools/list", params={})
        listed = (await bridge.answer(2))["result"]["tools"]
        assert "added" in [tool["name"] for tool in listed]
        assert await bridge.leave() == 0


async def test_a_changed_catalog_is_told_to_a_modern_host_that_listens(tmp_path):
    with counterpart(tmp_path) as gateway:
        bridge = await start_bridge(gateway.url)
        wanted = {"notifications": {"toolsListChanged": True}}
        await bridge.send(id="ears", method="subscriptions/listen", params=modern(**wanted))
        await bridge.until(lambda line: line.get("method") == "notifications/subscriptions/acknowledged")
        await bridge.send(id=1, method="tools/call", params=modern(name="change"))
        await bridge.until(lambda line: line.get("method") == "notifications/tools/list_changed")
        assert await bridge.leave() == 0


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_in_flight_survives_the_gateways_restart_and_keeps_its_key(tmp_path, era):
    with counterpart(tmp_path) as gateway:
        bridge = await start_bridge(gateway.url)
        if era == "handshake":
            await bridge.greet()
        params = {"name": "slow", "arguments": {}}
        await bridge.send(
            id=5, method="tools/call", params=params if era == "handshake" else modern(**params)
        )
        await asyncio.to_thread(wait_until, lambda: gateway.noted("keys"), "the call")
        await asyncio.to_thread(gateway.kill)
        await asyncio.to_thread(gateway.start)
        await asyncio.to_thread(wait_until, lambda: len(gateway.noted("keys")) == 2, "the second try")
        first, second = gateway.noted("keys")
        assert first == second != "None"
        (tmp_path / "release").touch()
        answer = await bridge.answer(5)
        assert answer["result"]["content"][0]["text"] == "slow done"
        if era == "handshake":
            await bridge.until(lambda line: line.get("method") == "notifications/tools/list_changed")
        await bridge.send(id=6, method="tools/list", params={} if era == "handshake" else modern())
        assert (await bridge.answer(6))["result"]["tools"]
        assert await bridge.leave() == 0


async def test_a_host_may_start_before_the_gateway(tmp_path):
    with counterpart(tmp_path) as gateway:
        await asyncio.to_thread(gateway.kill)
        bridge = await start_bridge(gateway.url)
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "h", "version": "1"},
        }
        await bridge.send(id=1, method="initialize", params=params)
        await asyncio.to_thread(gateway.start)
        assert (await bridge.answer(1))["result"]["protocolVersion"] == "2025-11-25"
        await bridge.leave()


async def test_a_gateway_that_stays_away_is_an_error_and_not_silence():
    bridge = await start_bridge("http://127.0.0.1:9", "--patience", "0")
    await bridge.send(id=1, method="tools/list", params=modern())
    failure = (await bridge.answer(1))["error"]
    assert "http://127.0.0.1:9 cannot be reached" in failure["message"]
    await bridge.leave()


async def test_a_cancelled_call_of_either_era_is_cancelled_at_the_gateway(gateway):
    for era in ("handshake", "modern"):
        bridge = await start_bridge(gateway.url)
        if era == "handshake":
            await bridge.greet()
        seen = len(gateway.noted("keys"))
        params = {"name": "slow"} if era == "handshake" else modern(name="slow")
        await bridge.send(id="c", method="tools/call", params=params)
        await asyncio.to_thread(wait_until, lambda n=seen: len(gateway.noted("keys")) > n, "the call")
        await bridge.send(method="notifications/cancelled", params={"requestId": "c"})
        await bridge.send(id="after", method="tools/list", params={} if era == "handshake" else modern())
        await bridge.answer("after")
        assert not any(line.get("id") == "c" and "result" in line for line in bridge.lines)
        assert await bridge.leave() == 0


async def test_a_line_that_is_no_message_is_answered_and_the_next_one_works(gateway):
    bridge = await start_bridge(gateway.url)
    bridge.process.stdin.write(b"not json\n[]\n\n")
    await bridge.send(id=1, method="tools/list", params=modern())
    await bridge.answer(1)
    assert [line["error"]["code"] for line in bridge.lines if line.get("id") is None] == [-32700, -32700]
    await bridge.leave()


def test_the_bridge_imports_nothing_heavy_and_costs_little_to_start(gateway):
    probe = (
        "import resource, sys; import agent_gate.cli.commands.bridge;"
        "spent = resource.getrusage(resource.RUSAGE_SELF);"
        "print(spent.ru_utime + spent.ru_stime, *sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    seconds, *modules = done.stdout.split()
    heavy = {"mcp", "msgspec", "cryptography", "websockets", "uvloop", "httptools", "ruamel", "jsonschema_rs"}
    assert heavy.isdisjoint(modules)
    assert float(seconds) < 0.3


def test_the_inspector_starts_the_bridge(gateway, tmp_path):
    entry = installed() / "@modelcontextprotocol" / "inspector"
    program = json.loads((entry / "package.json").read_text())["bin"]["mcp-inspector"]
    settings = {"mcpServers": {"gate": {"command": BRIDGE[0], "args": [*BRIDGE[1:], gateway.url]}}}
    (tmp_path / "mcp.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [node(), str(entry / program), "--cli", "--config", str(tmp_path / "mcp.json"), "--server", "gate",
         "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hi", "--format", "json", "-q"],
        capture_output=True, text=True, timeout=PATIENCE,
        env={**quiet_environment(tmp_path), "MCP_INSPECTOR_SECRET_STORE": "memory"},
    )  # fmt: skip
    assert "echo: {'text': 'hi'}" in done.stdout, done.stderr


TYPESCRIPT_HOST = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const client = new Client({ name: "host", version: "1" });
"""
MODERN_TYPESCRIPT_HOST = """
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
const client = new Client({ name: "host", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
"""
CALLING = """
const [command, ...args] = JSON.parse(process.argv[2]);
await client.connect(new StdioClientTransport({ command, args }));
const { tools } = await client.listTools();
const result = await client.callTool({ name: "echo", arguments: { text: "hi" } });
console.log(JSON.stringify({ tools: tools.length, text: result.content[0].text }));
await client.close();
"""


@pytest.mark.parametrize("library", [TYPESCRIPT_HOST, MODERN_TYPESCRIPT_HOST], ids=["handshake", "modern"])
def test_the_typescript_libraries_start_the_bridge(gateway, tmp_path, library):
    (tmp_path / "node_modules").symlink_to(installed())
    (tmp_path / "host.mjs").write_text(library + CALLING)
    done = subprocess.run(
        [node(), "host.mjs", json.dumps([*BRIDGE, gateway.url])],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, env=quiet_environment(tmp_path),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["text"] == "echo: {'text': 'hi'}"

"""A revision of MCP and a kind of source are each added where ARCHITECTURE.md says, and nowhere else."""

import json
import sys

import pytest
from tests.gateway import TOKEN, running
from tests.shape.program_copy import ROOT, ProgramCopy, named_in_architecture
from tests.waiting import wait_until

NEXT, NOW = "2027-06-30", "2026-07-28"
LAST_ENTRY = "        abolished=frozenset({-32002, -32042}),\n    ),\n"
FEATURES = (
    "has_sessions=False, repeats_in_headers=True, asks_by_result=True, types_results=True, levels_in_requests=True, "
    "listens_by_request=True, cancels_by_closing=True, resumes_streams=False, errors_have_statuses=True"
)
SERVER = """
import json, sys

spoken = sys.argv[1:]
tool = {"name": "revision", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}

def answer(method, version):
    if method == "initialize" or version not in spoken:
        return {"error": {"code": -32022, "message": "no", "data": {"supported": spoken, "requested": version}}}
    return {"result": {"resultType": "complete", **{
        "server/discover": {"supportedVersions": spoken, "capabilities": {"tools": {}}},
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": version}]},
    }[method]}}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        version = asked["params"].get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked["method"], version)}), flush=True)
"""
AGENT = f"agents: {{a: {{token: {TOKEN}}}}}\npermissions: permissions.yaml\n"
CONFIG = "gateway: {port: 0}\nadmin: {port: 0, socket: ./data/admin.sock}\n" + AGENT
ALLOW = "defaults: [{pattern: '*', action: allow}]\nrules: []\n"


@pytest.fixture
def program(tmp_path):
    return ProgramCopy(tmp_path / "program")


def call_tool(gateway, revision, tool):
    """What an agent hears that speaks this revision, over HTTP."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1"},
    }
    params = {"name": tool, "arguments": {}, "_meta": meta}
    return gateway.request(
        "POST",
        "/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        headers={
            "MCP-Protocol-Version": revision,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        },
    )


def test_a_revision_of_mcp_is_one_entry_for_agents_and_for_servers(program, tmp_path):
    program.insert("src/agent_gate/mcp/revisions.py", LAST_ENTRY, f'    Revision("{NEXT}", {FEATURES}),\n')
    assert program.touched == [
        f"src/agent_gate/{path}" for path in named_in_architecture("a revision of MCP")
    ]
    speaking = {"new": (NOW, NEXT), "behind": (NOW,)}
    servers = {
        name: {"command": sys.executable, "args": [str(tmp_path / "server.py"), *revisions]}
        for name, revisions in speaking.items()
    }
    files = {
        "config.yaml": CONFIG + f"servers: {json.dumps(servers)}\n",
        "permissions.yaml": ALLOW,
        "server.py": SERVER,
    }
    with running(tmp_path, files, "--insecure", env=program.env) as gateway:
        wait_until(lambda: gateway.request("GET", "/ready", token=None).status == 200, "both servers' start")
        for spoken in NOW, NEXT:
            met = {name: call_tool(gateway, spoken, f"{name}__revision") for name in speaking}
            assert {name: reply.json["result"]["content"][0]["text"] for name, reply in met.items()} == {
                "new": NEXT,
                "behind": NOW,
            }
        assert (
            call_tool(gateway, "2028-01-01", "new__revision").json["error"]["data"]["supported"][-1] == NEXT
        )


def test_a_kind_of_source_is_a_folder_and_an_entry_point(program, tmp_path):
    example = ROOT / "examples/notebooks/src/agent_gate_notebooks/__init__.py"
    program.write("src/agent_gate/sources/notebooks/__init__.py", example.read_text())
    program.insert(
        "pyproject.toml",
        'plugin = "agent_gate.sources.plugin:SOURCE"\n',
        'notebooks = "agent_gate.sources.notebooks:KIND"\n',
    )
    program.install()
    folder, registry = named_in_architecture("a kind of source")
    assert program.touched == [f"src/agent_gate/{folder}".replace("*", "notebooks") + "__init__.py", registry]
    files = {
        "config.yaml": CONFIG + "notebooks: {kitchen: {folder: notes}}\n",
        "permissions.yaml": ALLOW,
        "notes/pancakes.md": "Two eggs.",
    }
    with running(tmp_path, files, "--insecure", env=program.env) as gateway:
        wait_until(lambda: gateway.request("GET", "/ready", token=None).status == 200, "the source's start")
        assert gateway.call("kitchen__read_note", {"note": "pancakes"}).json["data"] == "Two eggs."

"""What agents learn of a source that died: that it did and when it is tried again, not what it printed."""

import pytest
from tests.gateway import TOKEN, running
from tests.waiting import wait_until

WORDS = "DB_URL=postgres://u:hunter2@db/notes"
SERVER = """\
import json, pathlib, sys
gone = pathlib.Path("gone")
def die():
    gone.touch()
    sys.exit("WORDS")
if gone.exists():
    die()
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "tools/call":
        die()
    if "id" not in message:
        continue
    tools = [{"name": "add", "inputSchema": {"type": "object"}}]
    info = {"name": "notes", "version": "1"}
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info, "tools": tools}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
""".replace("WORDS", WORDS)
CONFIG = f"""\
gateway: {{id: home, host: 127.0.0.1, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{pi: {{token: {TOKEN}, rate_limit: {{max_requests_per_minute: 0}}}}}}
servers: {{notes: {{type: stdio-mcp, command: python3, args: [server.py]}}}}
storage: {{path: ./data/gate.db}}
permissions: permissions.yaml
"""
FILES = {
    "config.yaml": CONFIG,
    "server.py": SERVER,
    "permissions.yaml": 'rules: [{pattern: "notes__*", action: allow}]',
}


@pytest.fixture
def gateway(tmp_path):
    with running(tmp_path, FILES, "--insecure") as gateway:
        yield gateway


def in_state(wanted, sources):
    return next((source for source in sources if wanted in (source.get("status"), source.get("state"))), None)


def test_what_a_source_printed_before_it_died_is_for_the_operator_alone(gateway):
    wait_until(lambda: in_state("ready", gateway.admin.get("/api/sources")))
    lost = gateway.call("notes__add").json["error"]
    assert lost["message"] == (
        "notes was lost during tools/call: it exited with code 1. Check whether it took effect"
    )
    told = wait_until(lambda: in_state("failed", gateway.admin.get("/api/sources")))
    assert told["reason"].endswith(f"\nIts last words were:\n{WORDS}")
    seen = wait_until(lambda: in_state("failed", gateway.request("GET", "/status").json["sources"]))
    assert seen["reason"] == "notes is not available: it exited with code 1"
    assert seen["next_try"] > 0

    def refused():
        message = gateway.call("notes__add").json["error"]["message"]
        return message if "failed" in message else ""

    expected = "notes is failed: notes is not available: it exited with code 1. Nothing was sent"
    assert wait_until(refused) == expected

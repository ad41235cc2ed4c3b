"""What servers answer that is hard to read, from end to end: every surface says the same of it, and people can look."""

import json
import sys

import pytest
from tests.gateway import TOKEN, running
from tests.waiting import wait_until

KEY = "123456789012345"
TEXT = {"type": "text", "text": "x"}
RESULTS = {
    "number": '{"content": [%s], "structuredContent": {"n": 1e400}}',
    "beside": '{"content": [%s], "more": -1e400}',
    "annotated": '{"content": [{"type": "text", "text": "x", "annotations": {"priority": 1e400}}]}',
    "resource": '{"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "x", "size": 1e400}}]}',
    "secret": '{"content": [%s], "structuredContent": {"n": 1e400, "key": "' + KEY + '"}}',
    "none": '{"foo": 1, "key": "' + KEY + '"}',
    "mood": '{"content": [%s, {"type": "mood", "text": {"of": ["the", "day"]}}]}',
    "deep": '{"content": ' + "[" * 5_000 + "]" * 5_000 + "}",
}
SERVER = """
import json, sys

results = json.load(open(sys.argv[1]))
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        body = json.dumps({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}})
    elif asked["method"] == "tools/list":
        body = json.dumps({"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in results]})
    elif asked["method"] == "tools/call":
        body = results[asked["params"]["name"]]
    else:
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print('{"jsonrpc":"2.0","id":%d,"result":%s}' % (asked["id"], body), flush=True)
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    results = {name: body.replace("%s", json.dumps(TEXT)) for name, body in RESULTS.items()}
    odd = {
        "command": sys.executable,
        "args": [str(folder / "server.py"), str(folder / "results.json")],
        "env": {"ODD_API_KEY": KEY},
    }
    config = {
        "gateway": {"port": 0},
        "admin": {"port": 0, "socket": "./data/admin.sock"},
        "agents": {"a": {"token": TOKEN}},
        "servers": {"odd": odd},
        "permissions": "permissions.yaml",
    }
    files = {
        "config.yaml": json.dumps(config),
        "permissions.yaml": "defaults: [{pattern: '*', action: allow}]\nrules: []\n",
        "server.py": SERVER,
        "results.json": json.dumps(results),
    }
    with running(folder, files, "--insecure") as started:
        wait_until(lambda: started.request("GET", "/ready", token=None).status == 200, "the server's start")
        yield started


def last_row(gateway, tool):
    """The end of the only call of this tool."""
    calls = {row["call"] for row in gateway.admin.get(f"/api/calls?text={tool}")["rows"]}
    [call] = calls
    return gateway.admin.get(f"/api/calls/{call}")[-1]


@pytest.mark.parametrize("tool", ["number", "beside", "annotated", "resource"])
def test_a_number_out_of_range_is_passed_on_and_recorded_as_it_came(gateway, tool):
    reply = gateway.call(f"odd__{tool}")
    assert reply.status == 200
    assert b"1e400" in reply.body or reply.json["data"] == "x"
    assert last_row(gateway, f"odd:{tool}")["state"] == "completed"


def test_a_part_of_an_unknown_type_is_passed_on_whatever_it_holds(gateway):
    reply = gateway.call("odd__mood")
    assert (reply.status, reply.json["data"]) == (200, "x")
    assert last_row(gateway, "odd:mood")["state"] == "completed"


def test_a_key_beside_a_number_out_of_range_is_masked(gateway):
    reply = gateway.call("odd__secret")
    assert reply.status == 200
    assert b"1e400" in reply.body
    assert KEY.encode() not in reply.body


def test_what_came_instead_of_a_result_is_kept_for_the_operator_without_the_servers_key(gateway):
    reply = gateway.call("odd__none")
    assert reply.json["error"]["code"] == "OUTCOME_UNKNOWN"
    assert "foo" not in reply.body.decode()
    row = last_row(gateway, "odd:none")
    assert row["state"] == "unknown"
    assert json.loads(row["body"]["came"])["foo"] == 1
    assert KEY not in json.dumps(row)


def test_a_result_nested_too_deep_ends_at_once_as_unknown(gateway):
    reply = gateway.call("odd__deep")
    assert reply.json["error"]["code"] == "OUTCOME_UNKNOWN"
    row = last_row(gateway, "odd:deep")
    assert row["state"] == "unknown"
    assert row["body"]["came"].startswith('{"jsonrpc":"2.0"')

"""What becomes of the arguments of a server's tools: defaults that count, and names that nobody declared."""

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, running
from tests.waiting import wait_until

CONFIG = f"""
gateway: {{port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{a: {{token: {TOKEN}, rate_limit: {{max_requests_per_minute: 0}}}}}}
servers: {{box: {{command: {sys.executable}, args: [{Path(__file__).with_name("echo_server.py")}]}}}}
storage: {{type: sqlite, path: ./data/gate.db}}
permissions: permissions.yaml
"""
PERMISSIONS = """
rules:
  - {pattern: "box__deploy(env=prod*)", action: deny, description: "production is frozen"}
  - {pattern: "box__deploy(env=ask*)", action: ask}
  - {pattern: "box__*", action: allow}
"""


@contextmanager
def started_in(folder, files):
    with running(folder, files, "--insecure") as gate:
        wait_until(lambda: gate.request("GET", "/ready").status == 200)
        yield gate


@pytest.fixture
def start(tmp_path):
    return lambda permissions=PERMISSIONS: started_in(
        tmp_path, {"config.yaml": CONFIG, "permissions.yaml": permissions}
    )


def echoed(body):
    return json.loads(body["data"])


def ended(gate, call):
    body = gate.request("GET", f"/api/calls/{call}?wait=50", timeout=60).json
    assert body["status"] == "executed", body
    return body


def test_a_default_that_a_schema_requires_meets_the_rules_as_if_it_had_been_sent(start):
    with start() as gate:
        for arguments in ({}, {"tag": "v1"}, {"env": "production"}):
            refused = gate.call("box__deploy", arguments, wait=5)
            assert (refused.status, refused.json["error"]["code"]) == (403, "FORBIDDEN")
        assert echoed(gate.call("box__deploy", {"env": "dev"}, wait=5).json) == {"env": "dev"}
        missing = gate.call("box__odd", {}, wait=5)
        assert missing.json["error"]["message"] == "Missing required argument: env"


def test_a_person_and_the_record_see_the_default_and_the_server_gets_what_was_sent(start):
    asks = 'rules: [{pattern: "box__deploy(env=prod)", action: ask, when: {env: prod}}]'
    with start(asks) as gate:
        call = gate.call("box__deploy", {"tag": "v1"}, wait=0).json["call"]
        [approval] = gate.admin.get("/api/approvals")
        assert approval["signature"] == "box__deploy(env=prod, tag=v1)"
        assert approval["arguments"] == {"env": "prod", "tag": "v1"}
    with start(asks) as gate:
        gate.answer("approve")
        assert echoed(ended(gate, call)) == {"tag": "v1"}
        [row, *_] = gate.admin.get(f"/api/calls/{call}")
        assert row["body"]["arguments"] == {"env": "prod", "tag": "v1"}


def test_every_missing_argument_is_named_and_a_wrong_value_is_told_what_it_must_be(start):
    with start() as gate:
        missing = gate.call("box__two", {}, wait=5).json["error"]
        assert missing["message"].splitlines() == ["Missing required argument: a", "Also missing: b"]
        wrong = gate.call("box__two", {"a": "x", "b": 1}, wait=5).json["error"]
        assert wrong["message"].splitlines() == ["Invalid value for b", "It must be of type string"]


def mcp_call(gate, tool, arguments):
    """One call over MCP, without a session."""
    params = {"name": tool, "arguments": arguments}
    reply = gate.request(
        "POST",
        "/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        headers={"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
    )
    return reply.json["result"]


def test_the_reason_of_a_rule_reaches_whoever_reads_the_refusal(start, tmp_path):
    with start() as gate:
        said = mcp_call(gate, "box__deploy", {})
        assert said["content"][0]["text"].splitlines() == ["Denied by policy", "production is frozen"]
        options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 30, "check": False}
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        where = ["--url", gate.url.replace("http", "ws", 1) + "/ws", "--token", TOKEN]
        asked = [COMMAND, "request", *where, "box__deploy", "env=prod"]
        assert "production is frozen" in nursery.run(asked, env=env, **options).stderr
        explain = [COMMAND, "explain", "--admin-socket", gate.announced["socket"], "box__deploy", "env=prod"]
        told = nursery.run(explain, env=env, **options).stdout
        assert "which says: production is frozen" in told


GATEWAY = CONFIG.replace("agents: {a: {", "agents: {a: {mode: gateway, ")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("box:deploy", {"env": "dev", "dry_run": True}, "Did you mean dryRun? It takes dryRun, env, tag"),
        ("box:deploy", {"env": "dev", "tags": "v"}, "Did you mean tag? It takes dryRun, env, tag"),
        ("box:deploy", {"env": "dev", "zzz": "v"}, "It takes dryRun, env, tag"),
        ("box:free", {"anything": 1}, ""),
        ("box:invites", {"a": "1", "b": "2", "more": "3"}, ""),
        ("box:deploy", {"env": "dev", "dryRun": True}, ""),
        ("box:edit", {"edits": [{"oldText": "a", "newText": "b"}], "dryRun": True}, ""),
    ],
)
def test_who_cannot_see_a_schema_is_told_of_a_slip_before_the_call_runs(tmp_path, tool, arguments, said):
    files = {"config.yaml": GATEWAY, "permissions.yaml": PERMISSIONS}
    with started_in(tmp_path, files) as gate:
        result = mcp_call(gate, "tool_execute", {"tool_id": tool, "args": arguments})
        text = result["content"][0]["text"]
        if said:
            assert result["isError"]
            [unknown] = arguments.keys() - {"env"}
            told = json.loads(text)["message"].splitlines()
            assert told == [f"Unknown argument: {unknown}", said]
        else:
            assert json.loads(text) == arguments


def test_an_argument_that_stands_one_level_too_deep_does_not_let_the_call_run(tmp_path):
    files = {"config.yaml": GATEWAY, "permissions.yaml": PERMISSIONS}
    with started_in(tmp_path, files) as gate:
        arguments = {"edits": [{"oldText": "a", "newText": "b", "dryRun": True}]}
        result = mcp_call(gate, "tool_execute", {"tool_id": "box:edit", "args": arguments})
        told = json.loads(result["content"][0]["text"])
        assert (result["isError"], told["error"]) == (True, "ARGS_INVALID")
        said = "Did you mean it beside edits? It takes newText, oldText"
        assert told["message"].splitlines() == ["Unknown argument: edits.0.dryRun", said]


def test_a_tool_that_is_hidden_tells_nothing_of_its_arguments(tmp_path):
    rule = 'rules: [{pattern: "box__deploy*", action: deny, description: "production is frozen"}]'
    with started_in(tmp_path, {"config.yaml": GATEWAY, "permissions.yaml": rule}) as gate:
        for arguments in ({}, {"env": 1}, {"dry_run": True}):
            result = mcp_call(gate, "tool_execute", {"tool_id": "box:deploy", "args": arguments})
            told = json.loads(result["content"][0]["text"])
            assert (told["error"], told["message"]) == ("FORBIDDEN", "Denied by policy")
            assert told["details"] == {"reason": "production is frozen"}
            refused = gate.call("box__deploy", arguments, wait=5)
            assert (refused.status, "env" in refused.body.decode()) == (403, False)


def test_an_unknown_argument_is_named_beside_the_result_and_in_the_record(start):
    with start() as gate:
        result = mcp_call(gate, "box__deploy", {"env": "dev", "dry_run": True})
        assert result["_meta"]["agent-gate/unknown-arguments"] == ["dry_run"]
        assert result["content"] == [{"type": "text", "text": '{"env": "dev", "dry_run": true}'}]
        [row, *_] = gate.admin.get("/api/calls?limit=1")["rows"]
        [told] = [one for one in gate.admin.get(f"/api/calls/{row['call']}") if "signature" in one["body"]]
        assert told["body"]["unknown_arguments"] == ["dry_run"]
        assert "agent-gate/unknown-arguments" not in mcp_call(gate, "box__free", {"x": 1}).get("_meta", {})

"""What becomes of the arguments of a server's tools: defaults that count, and names that nobody declared."""

import json
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.gateway import TOKEN, running

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


@pytest.fixture
def start(tmp_path):
    @contextmanager
    def started(permissions=PERMISSIONS):
        files = {"config.yaml": CONFIG, "permissions.yaml": permissions}
        with running(tmp_path, files, "--insecure") as gate:
            deadline = time.monotonic() + 20
            while gate.request("GET", "/ready").status != 200:
                assert time.monotonic() < deadline, gate.stderr
            yield gate

    return started


def echoed(body):
    return json.loads(body["data"])


def ended(gate, call):
    deadline = time.monotonic() + 20
    while (body := gate.request("GET", f"/api/calls/{call}").json)["status"] != "executed":
        assert time.monotonic() < deadline, body
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

"""A service whose address nobody answers on is shown as what it is, wherever a person looks."""

import json

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, running
from tests.processes import free_port
from tests.waiting import PATIENCE, wait_until

CONFIG = """\
gateway: {{port: 0}}
admin: {{port: 0}}
agent: {{token: {token}}}
services:
  lamp:
    url: http://127.0.0.1:{port}
    tools: {{lamp_on: {{description: "On", request: {{method: POST, path: /on}}}}}}
"""


@pytest.fixture
def gateway(tmp_path):
    config = CONFIG.format(token=TOKEN, port=free_port())
    with running(tmp_path, {"config.yaml": config}, "--insecure") as found:
        wait_until(lambda: found.admin.get("/api/sources")[0]["status"] != "ready", "its health check")
        yield found


def told(gateway, *words):
    done = nursery.run(
        [COMMAND, *words, "--admin-socket", gateway.announced["socket"]],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=gateway.folder,
    )
    return done.stdout + done.stderr


def test_status_sources_and_doctor_say_that_it_is_degraded(gateway):
    for command in "status", "sources", "doctor":
        assert "degraded" in told(gateway, command), command
    assert "agent-gate doctor" in told(gateway, "status")
    assert "cannot be reached" in told(gateway, "doctor")


def test_the_page_says_what_is_wrong_and_offers_to_try_again(gateway):
    [source] = gateway.admin.get("/api/sources")
    assert (source["status"], "cannot be reached" in source["reason"]) == ("degraded", True)
    [need] = [one for one in gateway.admin.get("/api/now")["needs"] if one["page"] == "sources/lamp"]
    assert "has trouble" in need["problem"]
    assert need["action"] == {"label": "Try now", "path": "/api/sources/lamp/connect"}


def test_ready_does_not_count_a_check_that_nobody_wrote(gateway):
    reply = gateway.request("GET", "/ready")
    assert reply.status == 200, json.dumps(reply.json)


def test_a_check_that_is_written_down_counts_for_ready_and_blocks_no_call(tmp_path):
    health = "    health: {method: POST, path: /well, expect_status: 204}\n"
    with Api() as api:
        port = api.url.rpartition(":")[2]
        files = {
            "config.yaml": CONFIG.format(token=TOKEN, port=port) + health,
            "permissions.yaml": "rules: [{pattern: lamp_on, action: allow}]",
        }
        with running(tmp_path, files, "--insecure") as gateway:
            wait_until(lambda: gateway.admin.get("/api/sources")[0]["status"] == "degraded", "its check")
            [source] = gateway.admin.get("/api/sources")
            assert "POST /well answered 200, expected 204" in source["reason"]
            assert gateway.request("GET", "/ready").status == 503
            assert gateway.call("lamp_on").status == 200
            api.replies["/well"] = (204, {}, b"")
            gateway.admin.request("POST", "/api/sources/lamp/connect")
            wait_until(lambda: gateway.request("GET", "/ready").status == 200, "its check again")

"""What belongs to sources counts on both gateways within a second: paired hosts, and definitions that a person accepted."""

import sys
from types import SimpleNamespace

import pytest
from tests import postgres
from tests.cluster.several import several
from tests.gateway import Api
from tests.remote.paired import HostProcess, command
from tests.waiting import wait_until

RULES = "rules: [{pattern: '*', action: allow}]"
WAVERING = """
import json, pathlib, sys
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message:
        continue
    if method == "initialize":
        reply = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                 "serverInfo": {"name": "wavering", "version": "1"}}
    elif method == "tools/list":
        said = pathlib.Path(sys.argv[1]).read_text()
        reply = {"tools": [{"name": "speak", "description": said, "inputSchema": {"type": "object"}}]}
    else:
        reply = {"content": [{"type": "text", "text": "{}"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": reply}), flush=True)
"""


@pytest.fixture(scope="module")
def sharing(tmp_path_factory):
    folder, database = tmp_path_factory.mktemp("sources"), postgres.server().new_database()
    (folder / "wavering.py").write_text(WAVERING)
    (folder / "said").write_text("Speaks softly")
    args = f"[{folder / 'wavering.py'}, {folder / 'said'}]"
    more = f"servers: {{wavering: {{command: {sys.executable}, args: {args}, pin: hold}}}}"
    with Api() as api, several(folder, database, api, more=more, rules=RULES) as gateways:
        yield SimpleNamespace(one=gateways.start("one"), two=gateways.start("two"), folder=folder)


def described(gateway):
    told = gateway.request("GET", "/api/tools/wavering__speak")
    return told.json.get("description") if told.status == 200 else None


def test_a_changed_definition_that_is_accepted_on_one_gateway_is_served_by_the_other(sharing):
    both = (sharing.one, sharing.two)
    for gateway in both:
        wait_until(lambda gateway=gateway: described(gateway) == "Speaks softly")
    (sharing.folder / "said").write_text("Speaks loudly")
    for gateway in both:
        gateway.admin.request("POST", "/api/sources/wavering/disconnect", {})
        gateway.admin.request("POST", "/api/sources/wavering/connect", {})
        wait_until(lambda gateway=gateway: gateway.admin.get("/api/changes"))
        assert described(gateway) == "Speaks softly"
    [change] = sharing.one.admin.get("/api/changes")
    accepted = {"source": "wavering", "tool": "speak", "pin": change["pin"]}
    sharing.one.admin.request("POST", "/api/changes/accept", accepted)
    wait_until(lambda: described(sharing.two) == "Speaks loudly")
    assert described(sharing.one) == "Speaks loudly"
    wait_until(lambda: sharing.two.admin.get("/api/changes") == [])


def test_a_host_that_is_paired_with_one_gateway_is_called_by_both_until_it_is_revoked_on_either(
    sharing, tmp_path
):
    one, two = sharing.one, sharing.two
    key = command(one, "identity").stdout.strip()
    assert command(two, "identity").stdout.strip() == key
    words = ("--name", "far", "--listen", "127.0.0.1:0", "--gateway-key", key)
    far = HostProcess(tmp_path, "agent_gate.hosts.cron:host", *words)
    try:
        pin = ("--remote-fingerprint", far.announced["fingerprint"])
        done = command(one, "pair", "tool", far.announced["url"], "far", *pin)
        assert done.returncode == 0, done.stderr
        wait_until(lambda: any(peer["name"] == "far" for peer in two.admin.get("/api/peers")))
        for gateway in (one, two):
            told = wait_until(
                lambda gateway=gateway: (r := gateway.call("far__cron_list")).status == 200 and r
            )
            assert told.json["data"] == {"jobs": []}
        assert command(two, "peers", "revoke", "far").returncode == 0
        wait_until(lambda: one.call("far__cron_list").status == 404)
        assert two.call("far__cron_list").status == 404
    finally:
        far.stop()

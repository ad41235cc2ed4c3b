"""`log.requests`: one line for each request at info, on every surface, and none by default."""

import json

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, running
from tests.waiting import PATIENCE, wait_until
from tests.wsgate import files

WANTED = "log: {requests: true}\n"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture
def api():
    with Api() as found:
        yield found


def lines(stderr, event="Request ended"):
    told = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    return [line for line in told if line.get("event") == event]


def gate(tmp_path, api, setting):
    written = files(api)
    return running(tmp_path, written | {"config.yaml": written["config.yaml"] + setting}, "--insecure")


def test_each_http_request_is_one_line_at_info(tmp_path, api):
    with gate(tmp_path, api, WANTED) as gateway:
        gateway.request("GET", "/api/tools")
        gateway.call("get_state", {"entity_id": "sensor.one"})
        gateway.request("GET", "/api/tools/nothing")
        found = wait_until(lambda: len(lines(gateway.stderr)) >= 3 and lines(gateway.stderr))
    assert [(line["level"], line["method"], line.get("tool"), line["status"]) for line in found] == [
        ("info", "GET", None, 200),
        ("info", "POST", "get_state", 200),
        ("info", "GET", "nothing", 404),
    ]
    assert all(line["seconds"] > 0 for line in found)


def test_by_default_requests_are_silent(tmp_path, api):
    with gate(tmp_path, api, "") as gateway:
        gateway.request("GET", "/api/tools")
        gateway.call("get_state", {"entity_id": "sensor.one"})
        assert gateway.call("unlock", {"entity_id": "lock.front"}).status == 403
        wait_until(lambda: lines(gateway.stderr, "A call was denied"))
        assert lines(gateway.stderr) == []


def test_looks_over_the_websocket_are_lines_too(tmp_path, api):
    with gate(tmp_path, api, WANTED) as gateway:
        url = gateway.announced["url"]
        nursery.run([COMMAND, "tools", "--url", url], env={"AGENT_TOKEN": TOKEN}, check=True)
        [line] = wait_until(lambda: [one for one in lines(gateway.stderr) if "surface" in one])
    assert (line["surface"], line["rpc"], line["level"]) == ("websocket", "list_tools", "info")


def test_a_call_over_the_websocket_is_one_line_like_any_other_request(tmp_path, api):
    with gate(tmp_path, api, WANTED) as gateway:
        url, asked = gateway.announced["url"], ("get_state", "entity_id=sensor.one")
        nursery.run([COMMAND, "request", "--url", url, *asked], env={"AGENT_TOKEN": TOKEN}, check=True)
        gateway.call("get_state", {"entity_id": "sensor.one"})
        found = wait_until(
            lambda: [one for one in lines(gateway.stderr) if one.get("tool")][1:2] and lines(gateway.stderr)
        )
        assert lines(gateway.stderr, "Call ended") == []
    told = [(line.get("surface"), line.get("rpc")) for line in found if line.get("tool") == "get_state"]
    assert told == [("websocket", "tool_request"), (None, None)]


def test_requests_on_standard_input_are_lines_too(tmp_path):
    config = {"gateway": {"port": 0}, "admin": {"port": 0}, "agent": {"token": TOKEN}}
    (tmp_path / "config.yaml").write_text(json.dumps(config | {"log": {"requests": True}}))
    call = {**LIST, "id": 2, "method": "tools/call", "params": {"name": "no_such", "arguments": {}}}
    (tmp_path / "asked").write_text("".join(json.dumps(one) + "\n" for one in (LIST, call)))
    with (tmp_path / "asked").open("rb") as asked:
        ended = nursery.run(
            [COMMAND, "serve", "--config", "config.yaml", "--stdio"],
            cwd=tmp_path,
            stdin=asked,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
    assert [(line["surface"], line["rpc"], line.get("tool")) for line in lines(ended.stderr)] == [
        ("stdio", "tools/list", None),
        ("stdio", "tools/call", "no_such"),
    ]

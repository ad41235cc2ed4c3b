"""Mistakes that an earlier gateway of this kind made with HTTP services and approvals; each named, none here."""

import json
import os

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, Gateway, in_front_of, running

CONFIG = """
gateway: {{id: t, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{a: {{token: {token}, rate_limit: {{max_requests_per_minute: 0}}}}}}
services:
  home: {{url: "{url}", auth: {{type: query, query_param: api_key, token: "query-secret-of-the-service"}}, tools: tools.yaml}}
permissions: permissions.yaml
"""
TOOLS = """
tools:
  ha_call_service: {args: {domain: {required: true}, service: {required: true}, entity_id: {}}, signature: "{domain}.{service}, {entity_id}", request: {method: POST, path: "/services/{domain}/{service}"}}
  get: {args: {id: {required: true}, limit: {type: integer}}, request: {method: GET, path: "/g/{id}"}}
  render: {args: {template: {required: true, text: true}}, request: {method: POST, path: /render}}
"""
PERMISSIONS = 'rules: [{pattern: "get", action: allow}, {pattern: "render", action: allow}]'


@pytest.fixture(scope="module")
def api():
    with Api() as made:
        yield made


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, api):
    with in_front_of(api, tmp_path_factory.mktemp("defects"), CONFIG, TOOLS, PERMISSIONS) as started:
        yield started


@pytest.fixture(autouse=True)
def fresh(api):
    api.reset()


def checked(folder, tools, services=""):
    (folder / "tools.yaml").write_text(tools)
    (folder / "config.yaml").write_text(
        f"services: {{home: {{url: 'http://127.0.0.1:9', tools: tools.yaml{services}}}}}"
    )
    env = {"PATH": os.environ["PATH"]}
    done = nursery.run([COMMAND, "check", "--json"], cwd=folder, env=env, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_the_audit_and_the_approval_showed_another_signature_than_policy_matched(gateway):
    arguments = {"domain": "light", "service": "turn_on", "entity_id": "light.a"}
    call = gateway.call("ha_call_service", arguments, wait=0).json["call"]
    [approval] = gateway.admin.get("/api/approvals")
    [row] = gateway.admin.get(f"/api/calls/{call}")
    explained = gateway.admin.request(
        "POST", "/api/explain", {"tool": "ha_call_service", "arguments": arguments, "caller": "a"}
    )
    assert (
        approval["signature"]
        == row["body"]["signature"]
        == explained["signature"]
        == "ha_call_service(light.turn_on, light.a)"
    )
    gateway.answer("deny")


def test_path_templates_were_not_escaped(gateway, api):
    assert gateway.call("get", {"id": "../../admin"}).status == 400
    assert api.requests == []
    gateway.call("get", {"id": "a/b?c#d"})
    gateway.call("get", {"id": "a/b#d"})
    assert [request["path"].partition("?")[0] for request in api.requests] == ["/g/a%2Fb%23d"]


def test_the_query_secret_stood_in_the_error_of_a_reply_that_is_not_json(gateway, api):
    api.replies["*"] = (200, {}, b"<html>api_key=query-secret-of-the-service</html>")
    reply = gateway.call("get", {"id": "x"})
    assert "api_key=query-secret-of-the-service" in api.requests[0]["path"]
    assert b"query-secret" not in reply.body
    assert "query-secret" not in gateway.stderr


def test_a_reply_that_is_not_json_said_unreachable_and_redirects_were_followed(gateway, api):
    api.replies["*"] = (200, {}, b"plain")
    assert gateway.call("get", {"id": "x"}).json["error"]["message"] == "Expected JSON response"
    api.replies["*"] = (302, {"Location": f"{api.url}/elsewhere"}, b"")
    assert gateway.call("get", {"id": "x"}).status == 502
    assert [request["path"].partition("?")[0] for request in api.requests] == ["/g/x", "/g/x"]


def test_arguments_of_a_get_that_are_not_in_the_path_were_dropped(gateway, api):
    gateway.call("get", {"id": "x", "limit": 3})
    assert "limit=3" in api.requests[0]["path"]


def test_an_error_template_with_an_unknown_placeholder_raised_at_the_call(tmp_path):
    found = checked(tmp_path, TOOLS, ", errors: [{status: 404, message: 'no {thing}'}]")
    assert not found["ok"]
    assert "thing" in found["faults"][0]["message"]


def test_a_button_pressed_after_a_restart_ran_nothing(tmp_path, api):
    files = {
        "config.yaml": CONFIG.format(token=TOKEN, url=api.url),
        "tools.yaml": TOOLS,
        "permissions.yaml": PERMISSIONS,
    }
    again = Gateway(tmp_path, "--insecure")
    with running(tmp_path, files, "--insecure") as first:
        call = first.call("ha_call_service", {"domain": "light", "service": "turn_on"}, wait=0).json["call"]
        first.stop()
    again.start()
    try:
        again.answer("approve")
        assert again.request("GET", f"/api/calls/{call}?wait=10").json["status"] == "executed"
        assert len(api.requests) == 1
    finally:
        again.stop()


def test_free_text_with_parentheses_was_always_refused(gateway, api):
    assert gateway.call("render", {"template": "{{ states('x') }}, *"}).status == 200
    assert json.loads(api.requests[0]["body"]) == {"template": "{{ states('x') }}, *"}


def test_an_empty_tools_file_gave_no_warning(tmp_path):
    assert any("no tools" in warning for warning in checked(tmp_path, "tools: {}\n")["warnings"])

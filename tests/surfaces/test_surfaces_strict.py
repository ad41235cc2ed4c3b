"""What every HTTP surface refuses alike: types it cannot meet, and strangers who want their own words back."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.gateway import Api
from tests.surfaces.admin.admin_gate import Browser, browser, gate
from tests.waiting import PATIENCE
from websockets.sync.client import connect

LONG = "Z" * 5000
CALL = "/api/tools/light_get"
MODERN = {"MCP-Protocol-Version": "2026-07-28", "Accept": "application/json, text/event-stream"}
HANDSHAKE = MODERN | {"MCP-Protocol-Version": "2025-06-18"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with gate(tmp_path_factory.mktemp("strict")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def operator(gateway: Any) -> Browser:
    return browser(gateway)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Content-Type": "application/json"}, 200),
        ({"Content-Type": "application/json; charset=UTF-8"}, 200),
        ({"Content-Type": "application/vnd.api+json"}, 200),
        ({"Accept": "text/html, application/json;q=0.5"}, 200),
        ({"Accept": "*/*;q=0.1"}, 200),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "application/json; charset=utf-16"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Accept": "text/html"}, 406),
        ({"Accept": "application/json;q=0"}, 406),
        ({"Accept": "image/*, application/json;q=0.000"}, 406),
    ],
)
def test_a_call_whose_types_cannot_be_met_is_refused_before_it_runs(
    gateway: Any, headers: dict[str, str], status: int
) -> None:
    gateway.api.reset()
    reply = gateway.call("light_get", {"room": "kitchen"}, headers=headers)
    assert reply.status == status, reply.body
    assert len(gateway.api.requests) == (status == 200)


def test_an_operator_s_request_of_another_type_is_refused(operator: Browser) -> None:
    refused = operator.send("POST", "/api/agents", {"name": "x"}, **{"Content-Type": "text/plain"})
    assert (refused.status, "application/json" in refused.json["error"]["message"]) == (415, True)
    login = Browser(operator.origin).send(
        "POST", "/api/session", {"link": "x"}, **{"Content-Type": "text/plain"}
    )
    assert login.status == 415


def test_every_surface_says_that_its_type_is_not_to_be_guessed(gateway: Any, operator: Browser) -> None:
    answers = [
        gateway.request("GET", path)
        for path in ("/health", "/api/tools", "/openapi.json", "/runtime/tools.ts", "/nothing", "/mcp")
    ]
    answers += [
        operator.send("GET", path)
        for path in ("/", "/app.js", "/api/status", "/metrics", "/answer/x", "/nothing")
    ]
    assert {reply.headers.get("x-content-type-options") for reply in answers} == {"nosniff"}


def rpc(method: str, params: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **more}


PUBLIC = {
    "a path": ("GET", f"/{LONG}", None, {}),
    "a tool": ("POST", f"/api/tools/{LONG}", {}, {}),
    "a tool to describe": ("GET", f"/api/tools/{LONG}", None, {}),
    "a tool in the body": ("POST", "/api/call", {"tool": LONG, "server": LONG}, {}),
    "an argument's name": ("POST", CALL, {"room": "x", LONG: 1}, {}),
    "an argument's value": ("POST", CALL, {"room": {LONG: LONG}}, {}),
    "a call": ("GET", f"/api/calls/{LONG}", None, {}),
    "a parameter": ("GET", f"/api/calls/{'0' * 32}?{LONG}=1&{LONG}=2", None, {}),
    "a wait": ("GET", f"/api/calls/{'0' * 32}?wait={LONG}", None, {}),
    "a filter": ("GET", f"/runtime/tools.ts?server={LONG}&tool={LONG}", None, {}),
    "an origin": ("GET", "/health", None, {"Origin": f"http://{LONG}"}),
    "a host": ("GET", "/health", None, {"Host": LONG}),
    "a body that is no JSON": ("POST", CALL, LONG.encode(), {}),
    "an upgrade": ("GET", "/ws", None, {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": LONG, "Sec-WebSocket-Version": LONG}),
    "a revision": ("POST", "/mcp", rpc("tools/list", {}), {**MODERN, "MCP-Protocol-Version": LONG}),
    "a session": ("POST", "/mcp", rpc("tools/list", {}), {**HANDSHAKE, "Mcp-Session-Id": LONG}),
    "a method": ("POST", "/mcp", rpc(LONG, {}), HANDSHAKE),
    "a method that the header names": ("POST", "/mcp", rpc(LONG, {}), {**MODERN, "Mcp-Method": LONG}),
    "another method than the header": ("POST", "/mcp", rpc("tools/list", {}), {**MODERN, "Mcp-Method": LONG}),
    "an MCP tool": ("POST", "/mcp", rpc("tools/call", {"name": LONG, "arguments": {}}), HANDSHAKE),
    "an MCP argument": ("POST", "/mcp", rpc("tools/call", {"name": "light_get", "arguments": {"room": 1, LONG: 2}}), HANDSHAKE),
    "a cursor": ("POST", "/mcp", rpc("tools/list", {"cursor": LONG}), HANDSHAKE),
    "a resource": ("POST", "/mcp", rpc("resources/read", {"uri": f"x:{LONG}"}), HANDSHAKE),
    "a prompt": ("POST", "/mcp", rpc("prompts/get", {"name": LONG}), HANDSHAKE),
    "a version": ("POST", "/mcp", {"jsonrpc": LONG, "id": 1, "method": "ping"}, HANDSHAKE),
    "a protocol version": ("POST", "/mcp", rpc("initialize", {"protocolVersion": LONG, "capabilities": {}, "clientInfo": {"name": LONG, "version": LONG}}), {}),
}  # fmt: skip


@pytest.mark.parametrize("what", PUBLIC)
def test_nobody_gets_thousands_of_their_own_characters_back(gateway: Any, what: str) -> None:
    method, path, body, headers = PUBLIC[what]
    reply = gateway.request(method, path, body, headers=headers)
    assert b"Z" * 300 not in reply.body, reply.body[:700]


@pytest.mark.parametrize(
    "message",
    [
        rpc(LONG, {}),
        rpc("tool_request", {"tool": LONG, "args": {}}),
        rpc("tool_request", {"tool": "light_get", "args": {"room": "x", LONG: 1}}),
        rpc("tool_request", {"tool": "light_get", "args": {"room": {LONG: LONG}}}),
        rpc("tool_request", {LONG: 1}),
        rpc("ack_results", {"ids": [LONG]}),
        rpc("cancel", {"id": LONG}),
        rpc("tool_browse", {"path": LONG, "query": LONG}),
        {"jsonrpc": LONG, "id": 1, "method": "list_tools"},
    ],
    ids=lambda message: f"{message['method'][:20]} {list(message.get('params', ()))}"[:60],
)
def test_a_websocket_gives_nobody_thousands_of_their_own_characters_back(gateway: Any, message: Any) -> None:
    headers = {"Authorization": "Bearer token-of-the-first-agent-in-tests"}
    with connect(gateway.url.replace("http", "ws") + "/ws", additional_headers=headers) as ws:
        ws.send(json.dumps(message))
        while "id" not in (reply := json.loads(ws.recv(timeout=PATIENCE))):
            pass
    assert "Z" * 300 not in json.dumps(reply), str(reply)[:700]


ADMIN = {
    "a path": ("GET", f"/api/{LONG}", None),
    "an approval": ("POST", f"/api/approvals/{LONG}", {"verdict": "approve"}),
    "a verdict": ("POST", f"/api/approvals/{'0' * 32}", {"verdict": LONG}),
    "a call": ("GET", f"/api/calls/{LONG}", None),
    "a tool": ("GET", f"/api/tools/{LONG}", None),
    "an agent": ("GET", f"/api/agents/{LONG}", None),
    "an agent to revoke": ("DELETE", f"/api/agents/{LONG}", None),
    "an agent's name": ("POST", "/api/agents", {"name": LONG}),
    "a mode": ("POST", "/api/agents", {"name": "x", "mode": LONG}),
    "an operator": ("DELETE", f"/api/operators/{LONG}", None),
    "a login": ("POST", "/api/logins", {"login": LONG}),
    "a server": ("POST", f"/servers/{LONG}/reconnect", None),
    "a server to disconnect": ("POST", f"/servers/{LONG}/disconnect", None),
    "a filter of the record": ("GET", f"/api/calls?since={LONG}&agent={LONG}&state={LONG}&cursor={LONG}&before={LONG}", None),
    "a repeated parameter": ("GET", f"/api/calls?{LONG}=1&{LONG}=1", None),
    "a policy question": ("POST", "/api/policy/explain", {"agent": LONG, "tool": LONG, "arguments": {LONG: LONG}}),
    "a policy question of somebody": ("POST", "/api/policy/explain", {"agent": "pi", "tool": LONG, "arguments": {}}),
    "a simulation": ("POST", "/api/policy/simulate", {"rules": LONG, "since": LONG}),
    "a rule": ("POST", "/api/policy/rules", {"pattern": LONG, "action": LONG}),
}  # fmt: skip


@pytest.mark.parametrize("what", ADMIN)
def test_the_admin_api_gives_nobody_thousands_of_their_own_characters_back(
    operator: Browser, what: str
) -> None:
    method, path, body = ADMIN[what]
    reply = operator.send(method, path, body)
    assert b"Z" * 300 not in reply.body, reply.body[:700]


def test_an_upstream_s_refusal_reaches_the_agent_shortened(gateway: Any) -> None:
    api: Api = gateway.api
    api.replies["/light/cellar"] = (500, {}, json.dumps({"message": LONG * 4}).encode())
    reply = gateway.call("light_get", {"room": "cellar"})
    assert reply.status == 502
    assert len(reply.body) < 6000

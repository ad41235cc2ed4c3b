"""Accounts of callers' own: nobody's results, sessions or links are another's, and each person gets their own link."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.approval.test_client_channel import Client, events
from tests.gateway import OTHER_TOKEN, TOKEN, Api, Gateway, running
from tests.oauth.authority import AuthorizationProcess, Person, answer_in, authorization_server
from tests.oauth.protected import ProtectedServer, protected_server
from tests.oauth.test_signing_in import came_back, state, traces
from tests.waiting import wait_until

CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0}}
agents:
  pi: {{token: {pi}}}
  coder: {{token: {coder}}}
servers:
  notes: {{url: "{url}", auth: {{type: oauth2-pkce}}, credentials: per-caller}}
"""
SERVICE = """
gateway: {{port: 0}}
admin: {{port: 0}}
agents:
  pi: {{token: {pi}}}
  coder: {{token: {coder}}}
services:
  greeter:
    url: "{url}"
    auth: {{type: api-key, header_name: X-Key}}
    credentials: per-caller
    tools: tools.yaml
"""
GREET = "tools: {greet: {request: {method: GET, path: /hello}}}\n"
RULES = "rules: [{pattern: 'notes__*', action: allow}, {pattern: 'connections_*', action: allow}, {pattern: greet, action: allow}]"
SHOWS_LINKS = {"elicitation": {"url": {}}}


@pytest.fixture(scope="module")
def authority() -> Iterator[AuthorizationProcess]:
    with authorization_server() as made:
        yield made


@pytest.fixture(scope="module")
def server(authority: AuthorizationProcess) -> Iterator[ProtectedServer]:
    with protected_server(authority.issuer) as made:
        yield made


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, server: ProtectedServer) -> Iterator[Gateway]:
    """A gateway at which the agent `pi` has connected the account of Alice, and `coder` none."""
    folder = tmp_path_factory.mktemp("callers")
    files = {
        "config.yaml": CONFIG.format(pi=TOKEN, coder=OTHER_TOKEN, url=server.url),
        "permissions.yaml": RULES,
    }
    with running(folder, files, "--insecure") as made:
        wait_until(lambda: state(made)["status"] == "needs_auth")
        began = made.call("connections_start", {"source": "notes"}).json["data"]
        connect(made, server.issuer, began["auth_url"], "alice")
        wait_until(lambda: state(made)["status"] == "ready")
        yield made
    assert server.mixed == []
    assert traces(folder, *server.tokens) == []


def questions(gateway: Gateway, tool: str) -> list[dict[str, Any]]:
    return [
        one for one in gateway.admin.get("/api/approvals") if one["tool_id"].startswith(f"connections:{tool}")
    ]


def settle(gateway: Gateway, tool: str, verdict: str = "approve") -> dict[str, Any]:
    """Answer the one open question of this kind, once it is there."""
    wait_until(lambda: questions(gateway, tool))
    [found] = questions(gateway, tool)
    gateway.admin.request("POST", f"/api/approvals/{found['id']}", {"verdict": verdict})
    return found


def connect(gateway: Gateway, issuer: str, link: str, person: str) -> None:
    """Consent, come back, and confirm in the inbox."""
    assert "Signed in" in came_back(gateway, Person(issuer, person).consent(link))
    asked = settle(gateway, "confirm")
    assert asked["arguments"]["account"] == f"{person}@example.test"


def said(reply) -> str:
    return reply.body.decode()


def test_each_agent_acts_with_its_own_account_and_one_without_gets_its_persons_link(gateway, server):
    assert "did read_note for alice" in said(gateway.call("notes__read_note"))
    refused = gateway.call("notes__read_note", token=OTHER_TOKEN)
    assert (refused.status, refused.json["error"]["retryable"]) == (503, False)
    link = refused.json["error"]["details"]["auth_url"]
    assert link.startswith(server.issuer)
    assert link in refused.json["error"]["message"]
    [asked] = questions(gateway, "invite")
    assert (asked["arguments"]["link"], asked["arguments"]["requester"]) == (link, "agent coder")
    again = gateway.call("notes__read_note", token=OTHER_TOKEN)
    assert again.json["error"]["details"]["auth_url"] == link
    assert len(questions(gateway, "invite")) == 1
    assert state(gateway)["status"] == "ready"
    connect(gateway, server.issuer, link, "bob")
    assert questions(gateway, "invite") == []
    wait_until(lambda: gateway.call("notes__read_note", token=OTHER_TOKEN).status == 200)
    for _ in range(3):
        assert "for bob" in said(gateway.call("notes__add_note", token=OTHER_TOKEN))
        assert "for alice" in said(gateway.call("notes__add_note"))
    mine = gateway.call("connections_status", token=OTHER_TOKEN).json["data"]
    assert [(one["agent"], one["account"]) for one in mine] == [("coder", "bob@example.test")]
    both = gateway.admin.get("/api/connections")
    assert [(one["agent"], one["account"]) for one in both] == [
        ("coder", "bob@example.test"),
        ("pi", "alice@example.test"),
    ]
    ended = gateway.call("connections_end", {"source": "notes"}, token=OTHER_TOKEN).json["data"]
    assert (ended["connected"], ended["agent"]) == (False, "coder")
    assert "auth_url" in gateway.call("notes__read_note", token=OTHER_TOKEN).json["error"]["details"]
    assert "for alice" in said(gateway.call("notes__read_note"))
    settle(gateway, "invite", "deny")


def test_a_denied_invitation_ends_its_sign_in(gateway, server):
    link = gateway.call("notes__read_note", token=OTHER_TOKEN).json["error"]["details"]["auth_url"]
    settle(gateway, "invite", "deny")
    wait_until(lambda: not questions(gateway, "invite"))
    page = came_back(gateway, Person(server.issuer, "mallory").consent(link), status=400)
    assert "could not be finished" in page
    assert questions(gateway, "confirm") == []


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Client]:
    made = Client(gateway, OTHER_TOKEN)
    yield made
    made.close()


def test_a_modern_client_is_asked_to_open_the_link_and_makes_its_call_again(gateway, server, client):
    params = {"name": "notes__read_note", "arguments": {}}
    asked = client.modern(params, SHOWS_LINKS)["result"]
    assert asked["resultType"] == "input_required"
    [(name, question)] = asked["inputRequests"].items()
    assert (question["method"], question["params"]["mode"]) == ("elicitation/create", "url")
    assert "elicitationId" not in question["params"]
    connect(gateway, server.issuer, question["params"]["url"], "carol")
    again = client.modern(params | {"inputResponses": {name: {"action": "accept"}}}, SHOWS_LINKS)["result"]
    assert "did read_note for carol" in json.dumps(again)
    gateway.call("connections_end", {"source": "notes"}, token=OTHER_TOKEN)


def test_a_handshake_client_that_shows_links_gets_the_error_that_carries_one(gateway, client):
    client.initialize(SHOWS_LINKS)
    call = {"id": 7, "method": "tools/call", "params": {"name": "notes__read_note", "arguments": {}}}
    error = answered(client.post(call))["error"]
    assert error["code"] == -32042
    [question] = error["data"]["elicitations"]
    assert (question["mode"], bool(question["elicitationId"])) == ("url", True)
    client.session = None
    client.initialize({"elicitation": {}})
    plain = answered(client.post(call))["result"]
    assert plain["isError"]
    assert question["url"] in plain["content"][0]["text"]
    settle(gateway, "invite", "deny")


def answered(response) -> dict[str, Any]:
    if response.headers["content-type"].startswith("application/json"):
        return json.loads(response.read())
    stream = events(response)
    found = next(stream)
    stream.close()
    return found


def test_a_sign_in_that_an_agent_begins_is_shown_by_its_client_in_both_eras(gateway, server, client):
    params = {"name": "connections_start", "arguments": {"source": "notes"}}
    asked = client.modern(params, SHOWS_LINKS)["result"]
    [(name, question)] = asked["inputRequests"].items()
    assert question["params"]["url"].startswith(server.issuer)
    known = answer_in(question["params"]["url"])["state"]
    again = params | {"requestState": asked["requestState"], "inputResponses": {name: {"action": "accept"}}}
    came = client.modern(again, SHOWS_LINKS)["result"]["structuredContent"]
    assert (came["agent"], came["connected"]) == ("coder", False)
    assert known not in json.dumps(came)
    client.initialize(SHOWS_LINKS)
    stream = events(client.post({"id": 9, "method": "tools/call", "params": params}))
    asked = next(stream)
    assert (asked["method"], asked["params"]["mode"]) == ("elicitation/create", "url")
    client.post({"id": asked["id"], "result": {"action": "accept"}}).read()
    found = next(stream)["result"]["structuredContent"]
    stream.close()
    assert (found["user_said"], found["auth_url"]) == ("accept", asked["params"]["url"])


def test_each_agent_has_its_own_key_which_is_tried_before_it_is_kept(tmp_path, authority):
    keys = {"the-key-of-pi-0123456789": "pi", "the-key-of-coder-0123456789": "coder"}
    wrong = "a-wrong-key-of-coder-0123456789"
    with protected_server(authority.issuer) as server:
        server.is_good = lambda token: token in keys  # type: ignore[method-assign]
        server.account = lambda token: keys.get(token, "")  # type: ignore[method-assign]
        text = CONFIG.format(pi=TOKEN, coder=OTHER_TOKEN, url=server.url).replace("oauth2-pkce", "api-key")
        with running(tmp_path, {"config.yaml": text, "permissions.yaml": RULES}, "--insecure") as gateway:
            wait_until(lambda: state(gateway)["status"] == "needs_auth")
            stored = gateway.call("connections_key", {"source": "notes", "key": next(iter(keys))})
            assert stored.json["data"]["message"] == "notes for pi: connected, I see 3 tools"
            assert "for pi" in said(gateway.call("notes__read_note"))
            lacking = gateway.call("notes__read_note", token=OTHER_TOKEN).json["error"]
            assert "connections_key" in lacking["message"]
            refused = gateway.call("connections_key", {"source": "notes", "key": wrong}, token=OTHER_TOKEN)
            assert "does not take this key" in refused.json["error"]["message"]
            body = {"key": list(keys)[1], "agent": "coder"}
            told = gateway.admin.request("POST", "/servers/notes/auth/key", body)
            assert (told["agent"], told["connected"]) == ("coder", True)
            assert "for coder" in said(gateway.call("notes__read_note", token=OTHER_TOKEN))
            assert "for pi" in said(gateway.call("notes__read_note"))
        assert server.mixed == []
    assert traces(tmp_path, *keys, wrong) == []


def test_a_service_over_http_gets_each_agents_own_key_and_a_refused_one_hurts_nobody_else(tmp_path):
    keys = {"the-key-of-pi-0123456789": "pi", "the-key-of-coder-0123456789": "coder"}

    def answer(handler, _body):
        name = keys.get(handler.headers.get("X-Key", ""))
        return (200, {}, json.dumps({"hello": name}).encode()) if name else (401, {}, b"{}")

    with Api() as api:
        api.replies["*"] = answer
        config = SERVICE.format(pi=TOKEN, coder=OTHER_TOKEN, url=api.url)
        files = {"config.yaml": config, "permissions.yaml": RULES, "tools.yaml": GREET}
        with running(tmp_path, files, "--insecure") as gateway:
            for agent, key in zip(("pi", "coder"), keys, strict=True):
                body = {"key": key, "agent": agent}
                gateway.admin.request("POST", "/servers/greeter/auth/key", body)
            for token, name in ((TOKEN, "pi"), (OTHER_TOKEN, "coder"), (TOKEN, "pi")):
                assert gateway.call("greet", token=token).json["data"] == {"hello": name}
            keys.popitem()
            assert gateway.call("greet", token=OTHER_TOKEN).json["error"]["code"] == "DEPENDENCY_UNAVAILABLE"
            assert gateway.call("greet").json["data"] == {"hello": "pi"}

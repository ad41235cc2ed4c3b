"""Accounts belong to the person that an agent works for: they serve that person's other agents, and never another's."""

import json

import pytest
from tests.gateway import OTHER_TOKEN, TOKEN, Api, running
from tests.oauth.authority import authorization_server
from tests.oauth.protected import protected_server
from tests.oauth.test_callers_accounts import RULES, said
from tests.oauth.test_signing_in import state
from tests.waiting import wait_until

BOBS = "token-of-an-agent-of-bobs-in-tests"
NOBODYS = "token-of-an-agent-of-nobodys-in-tests"
AGENTS = {
    "pi": (TOKEN, "anna"),
    "coder": (OTHER_TOKEN, "anna"),
    "bobs": (BOBS, "bob"),
    "alone": (NOBODYS, ""),
}
KEYS = {"the-key-of-anna-0123456789": "anna", "the-key-of-bob-0123456789": "bob"}
ANNAS, BOB = KEYS
CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0}}
agents: {agents}
people: {{anna: {{login: anna}}, bob: {{login: bob}}}}
servers:
  notes: {{url: "{url}", auth: {{type: api-key}}, credentials: per-caller}}
services:
  greeter:
    url: "{api}"
    auth: {{type: api-key, header_name: X-Key}}
    credentials: per-caller
    tools: tools.yaml
"""
GREET = "tools: {greet: {request: {method: GET, path: /hello}}}\n"


def agents(people=True):
    rows = {
        name: {"token": token, "person": person if people else ""} for name, (token, person) in AGENTS.items()
    }
    return json.dumps(rows)


def greeted(handler, _body):
    name = KEYS.get(handler.headers.get("X-Key", ""))
    return (200, {}, json.dumps({"hello": name}).encode()) if name else (401, {}, b"{}")


@pytest.fixture(scope="module")
def server():
    with authorization_server() as authority, protected_server(authority.issuer) as made:
        made.is_good = lambda token: token in KEYS
        made.account = lambda token: KEYS.get(token, "")
        yield made


@pytest.fixture(scope="module")
def api():
    with Api() as made:
        made.replies["*"] = greeted
        yield made


def files(server, api, **given):
    config = CONFIG.format(url=server.url, api=api.url, agents=agents(**given))
    return {"config.yaml": config, "permissions.yaml": RULES, "tools.yaml": GREET}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory, server, api):
    """The agent `pi` has connected accounts of Anna's at both."""
    with running(tmp_path_factory.mktemp("people"), files(server, api), "--insecure") as made:
        wait_until(lambda: state(made)["status"] == "needs_auth")
        for source in ("notes", "greeter"):
            assert made.call("connections_key", {"source": source, "key": ANNAS}).status == 200
        yield made


def test_what_one_agent_of_a_person_connected_serves_their_other_agents(gateway, server):
    for token in (TOKEN, OTHER_TOKEN):
        assert "for anna" in said(gateway.call("notes__read_note", token=token))
        assert gateway.call("greet", token=token).json["data"] == {"hello": "anna"}
    assert server.mixed == []


@pytest.mark.parametrize("token", [BOBS, NOBODYS])
def test_it_serves_nobody_elses_agents(gateway, token):
    for tool in ("notes__read_note", "greet"):
        refused = gateway.call(tool, token=token)
        assert (refused.status, "anna" in said(refused)) == (503, False)
    assert "anna" not in said(gateway.call("connections_status", token=token))


def test_two_people_act_each_with_their_own(gateway):
    for source in ("notes", "greeter"):
        assert gateway.call("connections_key", {"source": source, "key": BOB}, token=BOBS).status == 200
    for token, name in ((BOBS, "bob"), (TOKEN, "anna"), (OTHER_TOKEN, "anna"), (BOBS, "bob")):
        assert f"for {name}" in said(gateway.call("notes__read_note", token=token))
        assert gateway.call("greet", token=token).json["data"] == {"hello": name}
    for source in ("notes", "greeter"):
        gateway.call("connections_end", {"source": source}, token=BOBS)


def test_each_of_their_agents_sees_it_as_the_persons_and_so_does_an_operator(gateway):
    mine = gateway.call("connections_status", {"source": "notes"}, token=OTHER_TOKEN).json["data"]
    assert (mine["agent"], mine["connected"]) == ("person:anna", True)
    assert mine["message"].startswith("notes for anna: connected")
    rows = gateway.admin.get("/api/connections")
    assert {row["agent"] for row in rows if row["connected"]} == {"person:anna"}
    meant = gateway.admin.get("/servers/notes/auth/status?agent=coder")
    assert (meant["agent"], meant["connected"]) == ("person:anna", True)


def test_one_of_their_agents_ends_it_for_all_of_them(tmp_path, server, api):
    with running(tmp_path, files(server, api), "--insecure") as gateway:
        gateway.call("connections_key", {"source": "greeter", "key": ANNAS})
        assert gateway.call("greet", token=OTHER_TOKEN).status == 200
        gateway.call("connections_end", {"source": "greeter"}, token=OTHER_TOKEN)
        assert gateway.call("greet").status == 503


def test_what_agents_connected_before_becomes_their_persons(tmp_path, server, api):
    """At the start, and at the reload that says for whom an agent works; the newest of several counts."""
    with running(tmp_path, files(server, api, people=False), "--insecure") as gateway:
        gateway.call("connections_key", {"source": "greeter", "key": BOB}, token=OTHER_TOKEN)
        gateway.call("connections_key", {"source": "greeter", "key": ANNAS})
        assert gateway.call("greet", token=OTHER_TOKEN).json["data"] == {"hello": "bob"}
        (tmp_path / "config.yaml").write_text(files(server, api)["config.yaml"])
        gateway.admin.request("POST", "/api/reload", {})
        assert gateway.call("greet").json["data"] == {"hello": "anna"}
        assert gateway.call("greet", token=OTHER_TOKEN).json["data"] == {"hello": "anna"}
        assert gateway.call("greet", token=BOBS).status == 503
        gateway.stop()
        gateway.start()
        assert gateway.call("greet", token=OTHER_TOKEN).json["data"] == {"hello": "anna"}


def test_an_agent_cannot_be_a_person_by_its_name(tmp_path, server, api):
    found = files(server, api)
    rogue = "token-of-an-agent-with-a-persons-name"
    config = found["config.yaml"].replace('"pi":', f'"person:anna": {{"token": "{rogue}"}}, "pi":')
    with running(tmp_path, found | {"config.yaml": config}, "--insecure") as gateway:
        gateway.call("connections_key", {"source": "greeter", "key": ANNAS})
        assert gateway.call("greet", token=OTHER_TOKEN).status == 200
        assert gateway.call("greet", token=rogue).status == 503

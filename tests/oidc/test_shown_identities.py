"""A server that takes the provider's word for a person gets the ID token of that person's login, and of nobody else's."""

import json
from urllib.parse import parse_qs

import pytest
from tests.gateway import Api
from tests.oidc.agents_house import PersonWithAgent, login_gate
from tests.sign_in.conftest import PERMISSIONS

from agent_gate.access.jwt.reading import read_token

SERVICE = """
  greeter:
    url: "{url}"
    auth:
      type: token-exchange
      client_id: gate
      client_secret: a-secret-of-the-gateway
      token_url: "{url}/token"
      identity_url: "{url}/grant"
    credentials: per-caller
    tools: greet.yaml
"""
GREET = "tools: {greet: {request: {method: GET, path: /hello}}}\n"


class TakesIdentities(Api):
    """An issuer of grants, a token endpoint and an API in one, which writes down whose identity it was shown."""

    def __init__(self):
        super().__init__()
        self.replies["/grant"] = self.grant
        self.replies["/token"] = self.token
        self.replies["/hello"] = self.hello

    def grant(self, _handler, body):
        shown = parse_qs(body.decode())["subject_token"][0]
        return told({"access_token": f"grant-for-{read_token(shown).claims['sub']}", "token_type": "N_A"})

    def token(self, _handler, body):
        grant = parse_qs(body.decode())["assertion"][0]
        return told(
            {"access_token": grant.replace("grant", "token"), "token_type": "Bearer", "expires_in": 600}
        )

    def hello(self, handler, _body):
        return told({"hello": handler.headers["Authorization"].removeprefix("Bearer token-for-")})


def told(value):
    return (200, {}, json.dumps(value).encode())


@pytest.fixture(scope="module")
def gate(tmp_path_factory, api, provider):
    folder = tmp_path_factory.mktemp("identities")
    (folder / "greet.yaml").write_text(GREET)
    rules = PERMISSIONS.replace("rules: [", "rules: [{pattern: greet, action: allow}, ")
    with (
        TakesIdentities() as taker,
        login_gate(folder, api, provider, permissions=rules, agents="{sre: {}}") as made,
    ):
        made.before = made.before.replace("services:\n", f"services:{SERVICE.format(url=taker.url)}")
        (folder / "config.yaml").write_text(
            (folder / "config.yaml")
            .read_text()
            .replace("services:\n", f"services:{SERVICE.format(url=taker.url)}")
        )
        made.admin.request("POST", "/api/reload", {})
        yield made


def greeted(client):
    params = {"name": "greet", "arguments": {}}
    reply = client.mcp({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params})
    return reply.json["result"]


def test_each_person_is_known_there_by_their_own_login(gate, provider):
    clients = {}
    for name in ("anna", "ben"):
        provider.tell_of(name, groups="sre")
        clients[name] = PersonWithAgent(gate, provider, name).sign_in()
    for name in ("anna", "ben", "anna"):
        assert greeted(clients[name])["structuredContent"] == {"hello": name}


def test_another_agent_of_the_person_is_known_by_the_same_login(gate, provider):
    provider.tell_of("cora", groups="sre")
    PersonWithAgent(gate, provider, "cora").sign_in()
    other = PersonWithAgent(gate, provider, "cora", client="Other").sign_in()
    assert greeted(other)["structuredContent"] == {"hello": "cora"}


def test_an_identity_that_is_about_to_end_is_renewed_before_it_is_shown(gate, provider):
    provider.tell_of("dora", groups="sre")
    provider.let_identities_last(20)
    dora = PersonWithAgent(gate, provider, "dora").sign_in()
    assert greeted(dora)["isError"]
    provider.let_identities_last(3600)
    assert greeted(dora)["structuredContent"] == {"hello": "dora"}


def test_an_agent_whose_person_never_logged_in_is_told_so(gate):
    refused = gate.call("greet")
    assert refused.status == 503
    assert "without one" in refused.json["error"]["message"]

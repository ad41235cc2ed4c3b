"""Every kind of secret that accounts have, on a bad day: none is seen, kept in plain text, or sent where it does not belong."""

import json
from urllib.parse import parse_qs

import pytest
from tests import nursery
from tests.gateway import COMMAND, TOKEN, Api, running
from tests.oauth.test_signing_in import traces
from tests.observe.test_canaries import ADMIN, command_lines, echo, forms
from tests.waiting import wait_until

CANARY = {
    "master": "CANARY-master-secret-of-the-vault-0123456789",
    "vault": "CANARY-secret-in-the-vault-0123456789",
    "key": "CANARY-stored-key-0123456789",
    "refused key": "CANARY-refused-key-0123456789",
    "client secret": "CANARY-client-secret-0123456789",
    "identity": "CANARY-identity-token-0123456789",
    "identity client": "CANARY-identity-client-secret-0123456789",
    "code": "CANARY-authorization-code-0123456789",
    "access": "CANARY-access-token-0123456789",
    "refresh": "CANARY-refresh-token-0123456789",
    "next access": "CANARY-next-access-token-0123456789",
    "next refresh": "CANARY-next-refresh-token-0123456789",
    "machine access": "CANARY-machine-access-token-0123456789",
    "exchanged access": "CANARY-exchanged-access-token-0123456789",
    "grant": "CANARY-grant-of-an-identity-0123456789",
}
CONFIG = """
gateway: {{port: 0}}
admin: {{port: 0}}
agents: {{pi: {{token: {token}, rate_limit: {{max_requests_per_minute: 0}}}}}}
services:
  referring: {{url: "{api}", auth: {{type: bearer, token: "vault:named"}}, tools: referring.yaml}}
  keyed: {{url: "{api}", auth: {{type: api-key, header_name: X-Key}}, tools: keyed.yaml}}
  machine:
    url: "{api}"
    auth: {{type: client-credentials, client_id: m, client_secret: "${{CLIENT}}", token_url: "{authority}/token"}}
    tools: machine.yaml
  refused:
    url: "{api}"
    auth: {{type: client-credentials, client_id: no, client_secret: "${{CLIENT}}", token_url: "{authority}/refuse"}}
    tools: refused.yaml
  exchanged:
    url: "{api}"
    auth:
      {{type: token-exchange, client_id: x, identity_token: "env:IDENTITY", identity_url: "{authority}/identity",
       identity_client_id: i, identity_client_secret: "env:IDENTITY_CLIENT", token_url: "{authority}/token"}}
    tools: exchanged.yaml
  signed:
    url: "{api}"
    auth:
      {{type: oauth2, client_id: s, client_secret: "${{CLIENT}}", authorize_url: "{authority}/authorize",
       token_url: "{authority}/token"}}
    tools: signed.yaml
"""
NAMES = ("referring", "keyed", "machine", "refused", "exchanged", "signed")
TOOLS = 'tools: {{{name}_do: {{args: {{what: {{required: true}}}}, request: {{method: POST, path: "/{{what}}"}}}}}}\n'
ENV = {
    "CLIENT": "client secret",
    "IDENTITY": "identity",
    "IDENTITY_CLIENT": "identity client",
    "AGENT_GATE_SECRET": "master",
}


class Authority:
    """Gives the tokens above, in their order, and repeats what it was sent where it refuses."""

    def __init__(self):
        self.asked = []

    def __call__(self, handler, body):
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        self.asked.append(form)
        refusal = {"error": "invalid_grant", "error_description": f"{form} {dict(handler.headers)}"}
        given = None
        if handler.path == "/identity":
            given = {"access_token": CANARY["grant"], "token_type": "N_A"}
        elif form.get("grant_type") == "client_credentials" and handler.path == "/token":
            given = {"access_token": CANARY["machine access"]}
        elif form.get("assertion") == CANARY["grant"]:
            given = {"access_token": CANARY["exchanged access"]}
        elif form.get("code") == CANARY["code"]:
            given = {"access_token": CANARY["access"], "refresh_token": CANARY["refresh"], "expires_in": 1}
        elif form.get("refresh_token") == CANARY["refresh"]:
            given = {
                "access_token": CANARY["next access"],
                "refresh_token": CANARY["next refresh"],
                "expires_in": 1,
            }
        return (200 if given else 400), {}, json.dumps(given or refusal).encode()


def tried(gate, seen, path, body, method="POST"):
    try:
        seen.append(str(gate.admin.request(method, path, body)))
    except Exception as error:  # noqa: BLE001 - whatever it says is looked at
        seen.append(str(error))


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    """What was shown, what came to the services, and the folder with all that was kept."""
    folder = tmp_path_factory.mktemp("accounts")
    authority = Authority()
    with Api() as api, Api() as server:
        server.replies["*"] = authority
        files = {f"{name}.yaml": TOOLS.format(name=name) for name in NAMES}
        files["config.yaml"] = CONFIG.format(token=TOKEN, api=api.url, authority=server.url)
        files["permissions.yaml"] = 'defaults: [{pattern: "*", action: allow}]\n'
        env = {name: CANARY[key] for name, key in ENV.items()} | {"LOG_LEVEL": "debug"}
        with running(folder, files, "--insecure", env=env) as gate:
            shown = bad_day(gate, api)
        shown["log"] = gate.stderr
        sent = [str(one["headers"]) for one in api.requests]
    return shown, sent, authority.asked, folder


def bad_day(gate, api):
    said = []
    tried(gate, said, "/api/secrets/named", {"value": CANARY["vault"]}, "PUT")
    tried(gate, said, "/servers/keyed/auth/key", {"key": CANARY["key"]})
    tried(gate, said, "/servers/keyed/auth/key", {"key": CANARY["refused key"] + "\n"})
    tried(gate, said, "/servers/signed/auth/code", {"code": CANARY["code"] + "-of-nobody"})
    tried(gate, said, "/servers/signed/auth/start", {})
    tried(gate, said, "/servers/signed/auth/code", {"code": CANARY["code"]})
    for what, behaviour in (("fine", (200, {}, b"{}")), ("tea", echo), ("bad", echo)):
        api.replies["*"] = behaviour
        said += [gate.call(f"{name}_do", {"what": what}).body.decode() for name in NAMES]
    api.replies["*"] = (401, {}, b"no")
    said += [gate.call(f"{name}_do", {"what": "late"}).body.decode() for name in NAMES]
    wait_until(lambda: "has ended" in str(gate.admin.get("/api/approvals")))
    tried(gate, said, "/servers/signed/auth/end", {})
    shown = {
        path: str(gate.admin.get(path)) for path in (*ADMIN, "/api/connections", "/api/secrets", "/api/vault")
    }
    backup = ["backup", "copy", "--config", "config.yaml"]
    done = nursery.run([COMMAND, *backup], cwd=gate.folder, capture_output=True, text=True)
    return shown | {
        "said": said,
        "processes": command_lines(gate.process.pid),
        "backup": done.stdout + done.stderr,
    }


@pytest.mark.parametrize("name", CANARY)
def test_a_secret_of_an_account_is_shown_nowhere_and_kept_nowhere_in_plain_text(day, name):
    shown, _, _, folder = day
    every = forms(CANARY[name])
    assert [(place, one) for place, text in shown.items() for one in every if one in str(text)] == []
    assert traces(folder, *every) == []


def test_each_secret_went_where_it_belongs_and_nowhere_else(day):
    _, sent, asked, _ = day
    came = "\n".join(sent)
    for name in ("vault", "key", "machine access", "exchanged access", "access", "next access"):
        assert CANARY[name] in came, name
    for name in ("client secret", "identity", "code", "refresh", "next refresh", "grant", "master"):
        assert not any(one in came for one in forms(CANARY[name])), name
    assert any(CANARY["identity"] in str(one) for one in asked)
    assert TOKEN not in came + str(asked)


def test_the_bad_day_of_accounts_was_a_bad_day(day):
    """The test could fail: what could leak did happen."""
    shown, _, asked, folder = day
    assert {one.get("grant_type", "").rpartition(":")[2] for one in asked} == {
        "authorization_code", "client_credentials", "jwt-bearer", "refresh_token", "token-exchange",
    }  # fmt: skip
    assert "•••" in str(shown["said"])
    assert "invalid_grant" in str(shown)
    assert list((folder / "copy").iterdir())

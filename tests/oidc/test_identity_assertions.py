"""Clients that prove themselves by a key, and come in for a person by the provider's assertion (ID-JAG)."""

import json
import sqlite3
import time
import uuid
from contextlib import closing

import pytest
from joserfc.jwk import ECKey
from tests import postgres
from tests.gateway import running
from tests.issuer import OTHER, TokenIssuer, signed
from tests.oidc.agents_house import AUTH, tools_of
from tests.sign_in.conftest import files
from tests.sign_in.small_client import SmallClient, begin, follow, say_yes
from tests.sign_in.test_two_gateways_sign_in import SECRET

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
KEY = ECKey.generate_key("P-256")
RULES = """
rules:
  - {pattern: "agents__sign_in(evil.example)", action: deny}
  - {pattern: "agents__sign_in(strict.example)", action: ask, approvers: [operator]}
defaults: [{pattern: "*", action: ask}]
"""
OIDC = """auth:
  sign_in: true
  client_documents: false
{more}  oidc:
    issuer: {issuer}
    client_id: gate
    person: email
    agents: {{sre: {{}}, writers: {{namespaces: [notes]}}}}
"""


class AssertingProvider(TokenIssuer):
    """An OpenID provider as far as a token endpoint asks it: what it says of itself, and its keys."""

    def __init__(self):
        super().__init__()
        said = {"issuer": self.url, "jwks_uri": self.jwks_url}
        said |= {f"{name}_endpoint": f"{self.url}/{name}" for name in ("authorization", "token")}
        self.replies["/.well-known/openid-configuration"] = (200, {}, json.dumps(said).encode())

    def assertion(self, client, header=None, **more):
        claims = {
            "aud": client.issuer,
            "client_id": client.client_id,
            "resource": f"{client.issuer}/mcp",
            "jti": uuid.uuid4().hex,
            "sub": "u-1",
            "email": "anna@example.test",
            "email_verified": True,
            "groups": ["sre"],
        }
        return self.token(header={"typ": "oauth-id-jag+jwt"} | (header or {}), **(claims | more))


class ProvingClient(SmallClient):
    """A client with a key of its own."""

    def register(self, **more):
        keys = {"keys": [KEY.as_dict(private=False)]}
        return super().register(token_endpoint_auth_method="private_key_jwt", jwks=keys, **more)

    def proof(self, key=KEY, header=None, **more):
        now = int(time.time())
        claims = {"iss": self.client_id, "sub": self.client_id, "aud": self.issuer, "jti": uuid.uuid4().hex}
        claims |= {"iat": now, "exp": now + 300} | more
        claims = {name: value for name, value in claims.items() if value is not None}
        return signed({"alg": "ES256"} | (header or {}), claims, key)

    def proving(self, proof=None):
        return {"client_assertion_type": ASSERTION, "client_assertion": proof or self.proof()}

    def bring(self, assertion, proof=None, **more):
        """Ask for a token with the provider's word."""
        form = {"grant_type": JWT_BEARER, "assertion": assertion} | self.proving(proof) | more
        reply = self.post_form("/token", form)
        if reply.status == 200:
            self.tokens = reply.json
        return reply


@pytest.fixture(scope="module")
def asserting():
    with AssertingProvider() as made:
        yield made


def config(api, provider, more=""):
    found = files(api, permissions=RULES)
    text = found["config.yaml"].replace(AUTH, OIDC.format(issuer=provider.url, more=more))
    return found | {"config.yaml": text}


@pytest.fixture(scope="module")
def gate(tmp_path_factory, api, asserting):
    with running(tmp_path_factory.mktemp("assertions"), config(api, asserting), "--insecure") as started:
        yield started


@pytest.fixture
def client(gate):
    made = ProvingClient(gate)
    told = made.register()
    assert (told.status, told.json["token_endpoint_auth_method"]) == (201, "private_key_jwt")
    return made


def error_of(reply):
    return reply.status, reply.json["error"]


# Assertions about people


def test_an_assertion_of_the_provider_lets_the_client_in_for_its_person(gate, client, asserting):
    reply = client.bring(asserting.assertion(client))
    assert reply.status == 200, reply.body
    assert "refresh_token" not in reply.json
    assert reply.headers["cache-control"] == "no-store"
    assert {"home_act", "notes_write"} <= tools_of(client)
    row = next(one for one in gate.admin.get("/api/agents") if one["name"] == "tester/anna@example.test")
    assert row["signed_in"]["person"] == "anna@example.test"
    [call] = [
        one
        for one in gate.admin.get("/api/calls?limit=50")["rows"]
        if one["caller"] == "sign-in" and one["state"] == "dispatching"
    ]
    assert call["body"]["person"] == "anna@example.test"


def test_the_groups_of_the_person_and_the_scopes_of_the_assertion_narrow_it(gate, client, asserting):
    writer = asserting.assertion(client, sub="u-2", email="bert@example.test", groups=["writers"])
    assert client.bring(writer).json["scope"] == "mcp mcp:notes"
    scoped = asserting.assertion(client, scope="mcp mcp:home")
    assert client.bring(scoped).json["scope"] == "mcp mcp:home"
    less = asserting.assertion(client, scope="mcp mcp:home mcp:notes")
    assert client.bring(less, scope="mcp:notes").json["scope"] == "mcp mcp:notes"
    other = asserting.assertion(client, scope="mcp mcp:home")
    assert error_of(client.bring(other, scope="mcp:notes")) == (400, "invalid_scope")


def test_what_the_groups_do_not_give_is_refused_since_nobody_is_asked(gate, client, asserting):
    more = asserting.assertion(
        client, sub="u-3", email="cora@example.test", groups=["writers"], scope="mcp:home"
    )
    assert error_of(client.bring(more)) == (400, "access_denied")
    nobody = asserting.assertion(client, sub="u-4", email="dirk@example.test", groups=["others"])
    assert error_of(client.bring(nobody)) == (400, "access_denied")
    assert gate.admin.get("/api/approvals") == []


@pytest.mark.parametrize("host", ["evil.example", "strict.example"])
def test_rules_count_for_assertions_too(gate, asserting, host):
    client = ProvingClient(gate, callback=f"https://{host}/back")
    client.register()
    assert error_of(client.bring(asserting.assertion(client))) == (400, "access_denied")
    assert gate.admin.get("/api/approvals") == []


def test_an_assertion_counts_once(client, asserting):
    text = asserting.assertion(client)
    assert client.bring(text).status == 200
    assert error_of(client.bring(text)) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "bent",
    [
        {"aud": "https://elsewhere.example"},
        {"client_id": "another-client"},
        {"client_id": None},
        {"resource": None},
        {"resource": "https://elsewhere.example/mcp"},
        {"jti": None},
        {"sub": None},
        {"iss": "https://evil.example"},
        {"exp": int(time.time()) - 3600},
        {"exp": int(time.time()) + 86_400},
        {"exp": None},
        {"header": {"typ": "JWT"}},
        {"header": {"typ": None}},
        {"header": {"alg": "none"}},
        {"key": OTHER},
        {"sub": "u-9", "email_verified": None},
    ],
)
def test_an_assertion_that_is_not_for_this_client_here_and_now_lets_nobody_in(client, asserting, bent):
    if bent.get("header") == {"alg": "none"}:
        head, _, rest = asserting.assertion(client).partition(".")
        text = f"eyJhbGciOiJub25lIiwidHlwIjoib2F1dGgtaWQtamFnK2p3dCJ9.{rest}"
        assert head
    else:
        text = asserting.assertion(client, **bent)
    status, error = error_of(client.bring(text))
    assert (status, error in ("invalid_grant", "invalid_target")) == (400, True)


def test_a_person_who_logged_in_before_is_known_by_what_the_provider_calls_them(client, asserting):
    assert client.bring(asserting.assertion(client, sub="u-5", email="edda@example.test")).status == 200
    bare = asserting.assertion(client, sub="u-5", email=None, email_verified=None, groups=None)
    assert client.bring(bare).status == 200


def test_a_client_without_a_key_brings_no_assertion(gate, asserting):
    public = SmallClient(gate)
    public.register()
    form = {"grant_type": JWT_BEARER, "client_id": public.client_id, "assertion": asserting.assertion(public)}
    assert error_of(public.post_form("/token", form)) == (400, "unauthorized_client")


def test_a_token_that_is_no_assertion_for_us_is_no_way_in_as_a_bearer_either(gate, client, asserting):
    assert client.list_tools(asserting.assertion(client)).status == 401


# Clients that prove themselves


def test_a_client_with_a_key_signs_in_and_refreshes_with_it_and_never_without(gate, client):
    browser, place = begin(client, scope="mcp")
    say_yes(gate, browser.get(place).number)
    code = follow(browser, place).answer()["code"]
    assert error_of(client.redeem(code)) == (401, "invalid_client")
    assert client.redeem(code, **client.proving()).status == 200
    assert error_of(client.refresh()) == (401, "invalid_client")
    assert client.refresh(**client.proving()).status == 200


@pytest.mark.parametrize(
    "bent",
    [
        {"key": ECKey.generate_key("P-256")},
        {"sub": "another"},
        {"iss": "another"},
        {"aud": "https://elsewhere.example"},
        {"aud": None},
        {"jti": None},
        {"exp": None},
        {"exp": int(time.time()) - 3600},
        {"exp": int(time.time()) + 86_400},
        {"header": {"typ": "oauth-id-jag+jwt"}},
    ],
)
def test_a_proof_that_is_not_this_clients_for_here_and_now_counts_for_nothing(client, asserting, bent):
    reply = client.bring(asserting.assertion(client), client.proof(**bent), client_id=client.client_id)
    assert error_of(reply) == (401, "invalid_client")


def test_a_proof_counts_once_and_names_the_client_by_itself(client, asserting):
    proof = client.proof(aud=f"{client.issuer}/token")
    assert client.bring(asserting.assertion(client), proof).status == 200
    assert error_of(client.bring(asserting.assertion(client), proof)) == (401, "invalid_client")


def test_proofs_that_are_good_for_nothing_leave_nothing_behind(gate, client):
    """Else a stranger with a key of their own could fill the place in which logout tokens are remembered."""
    proof = client.proof()
    before = remembered(gate)
    for _ in range(3):
        assert error_of(client.redeem("agc_none", **client.proving(proof))) == (400, "invalid_grant")
        assert error_of(client.refresh("agr_none", **client.proving(proof))) == (400, "invalid_grant")
    assert remembered(gate) == before


def remembered(gate):
    with closing(sqlite3.connect(gate.folder / "data" / "gate.db")) as store:
        return store.execute("SELECT COUNT(*) FROM used_tokens").fetchone()


def test_a_client_that_registered_no_key_cannot_prove_itself(gate):
    public = ProvingClient(gate, name="Public")
    assert SmallClient.register(public).json["token_endpoint_auth_method"] == "none"
    assert error_of(public.refresh("x", **public.proving())) == (401, "invalid_client")


@pytest.mark.parametrize(
    "keys", [None, {}, {"keys": []}, {"keys": [KEY.as_dict(private=True)]}, {"keys": ["x"]}]
)
def test_keys_that_prove_nothing_are_refused_at_registration(gate, keys):
    client = SmallClient(gate)
    reply = client.register(token_endpoint_auth_method="private_key_jwt", jwks=keys)
    assert error_of(reply) == (400, "invalid_client_metadata")


@pytest.mark.parametrize("place", ["http://127.0.0.1/keys", "https://u@keys.example/k", "file:///k", 7])
def test_keys_are_published_at_a_plain_https_address(gate, place):
    reply = SmallClient(gate).register(token_endpoint_auth_method="private_key_jwt", jwks_uri=place)
    assert error_of(reply) == (400, "invalid_client_metadata")


def test_keys_stand_in_one_place(gate):
    client = ProvingClient(gate, name="Both")
    assert error_of(client.register(jwks_uri="https://keys.example/k")) == (400, "invalid_client_metadata")


def test_keys_at_an_address_inside_the_network_are_not_read(gate, asserting):
    client = ProvingClient(gate, name="Inside")
    inside = f"https://127.0.0.1:{asserting.url.rpartition(':')[2]}/keys"
    told = SmallClient.register(client, token_endpoint_auth_method="private_key_jwt", jwks_uri=inside)
    assert (told.status, told.json["jwks_uri"]) == (201, inside)
    reply = client.refresh("agr_none", **client.proving())
    assert error_of(reply) == (503, "temporarily_unavailable")
    assert asserting.fetches == 0 or "127.0.0.1 is not a public address" in gate.stderr


def test_a_client_may_want_assertions_alone(gate):
    assert ProvingClient(gate, name="Alone").register(grant_types=[JWT_BEARER]).status == 201
    assert SmallClient(gate).register(grant_types=["password"]).status == 400


def test_the_document_says_what_is_taken(gate):
    said = gate.request("GET", "/.well-known/oauth-authorization-server", token=None).json
    assert said["authorization_grant_profiles_supported"] == ["urn:ietf:params:oauth:grant-profile:id-jag"]
    assert JWT_BEARER in said["grant_types_supported"]
    assert said["token_endpoint_auth_methods_supported"] == ["none", "private_key_jwt"]
    assert "HS256" not in said["token_endpoint_auth_signing_alg_values_supported"]


def test_what_was_used_on_one_gateway_is_used_on_the_other(tmp_path, api, asserting):
    url, issuer = postgres.server().clean_database(), "http://127.0.0.1:9"

    def shared(name):
        found = config(api, asserting, f'  public_url: "{issuer}"\n')
        text = found["config.yaml"].replace("{port: 0}", f"{{port: 0, id: {name}, tenant: home}}", 1)
        text = text.replace(
            "storage: {type: sqlite, path: ./data/gate.db}", f'storage: {{type: postgres, url: "{url}"}}'
        )
        return found | {"config.yaml": text}

    with (
        running(tmp_path / "one", shared("one"), "--insecure", env=SECRET) as one,
        running(tmp_path / "two", shared("two"), "--insecure", env=SECRET) as two,
    ):
        client = ProvingClient(one, issuer=issuer)
        client.register()
        text, proof = asserting.assertion(client), client.proof()
        assert client.bring(text, proof).status == 200
        client.gate = two
        assert error_of(client.bring(text)) == (400, "invalid_grant")
        assert error_of(client.bring(asserting.assertion(client), proof)) == (401, "invalid_client")
        assert client.bring(asserting.assertion(client)).status == 200

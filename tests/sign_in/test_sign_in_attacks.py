"""What somebody tries who should not come in: each attack on a sign-in, against a real gateway."""

import json
from urllib.parse import urlsplit

import pytest
from tests.sign_in.small_client import (
    SmallBrowser,
    SmallClient,
    begin,
    challenge_of,
    follow,
    question,
    say_yes,
    sign_in,
)


@pytest.fixture
def client(gate):
    made = SmallClient(gate)
    assert made.register().status == 201
    return made


def coded(gate, client):
    """A code that waits to be redeemed."""
    browser, place = begin(client)
    say_yes(gate, browser.get(place).number)
    return follow(browser, place).answer()["code"]


def test_a_code_that_is_injected_into_another_flow_is_worth_nothing(gate, client):
    code, theirs = coded(gate, client), SmallClient(gate)
    theirs.client_id = client.client_id
    assert theirs.redeem(code).json["error"] == "invalid_grant"
    assert client.redeem(code).status == 200


def test_a_code_of_another_client_is_worth_nothing(gate, client):
    code = coded(gate, client)
    other = SmallClient(gate, name="Other")
    other.register()
    assert other.redeem(code, code_verifier=client.verifier).json["error"] == "invalid_grant"
    assert client.redeem(code, redirect_uri="http://127.0.0.1:3999/other").json["error"] == "invalid_grant"


def test_a_code_that_comes_twice_ends_what_it_gave(gate, client):
    code = coded(gate, client)
    assert client.redeem(code).status == 200
    assert client.list_tools().status == 200
    tokens = client.tokens
    assert client.redeem(code).json["error"] == "invalid_grant"
    assert client.list_tools(tokens["access_token"]).status == 401
    assert client.refresh(tokens["refresh_token"]).json["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "changed",
    [
        {"code_challenge": None},
        {"code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge": "short"},
        {"response_type": "token"},
        {"resource": "https://elsewhere.example/mcp"},
    ],
    ids=["no-challenge", "no-method", "plain", "short", "implicit", "foreign-resource"],
)
def test_a_downgraded_request_never_becomes_a_question(gate, client, changed):
    told = SmallBrowser(gate.url).get(client.authorize_url(**changed))
    assert told.status == 302
    assert told.answer()["error"] in ("invalid_request", "unsupported_response_type", "invalid_target")
    assert told.answer()["iss"] == gate.url
    assert gate.admin.get("/api/approvals") == []


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/callback",
        "http://127.0.0.1:3999/callback/../evil",
        "http://127.0.0.1.evil.example:3999/callback",
        "http://evil.example@127.0.0.1:3999/callback",
        "http://127.0.0.1:3999/callback#x",
        "http://localhost:3999/callback",
        "http://127.0.0.1:3999/Callback",
        "//evil.example/callback",
        "javascript:alert(1)",
    ],
)
def test_an_answer_is_sent_to_nobody_but_the_client(gate, client, uri):
    shown = SmallBrowser(gate.url).get(client.authorize_url(redirect_uri=uri))
    assert shown.status == 400
    assert "location" not in shown.headers
    assert uri not in shown.text


def test_an_error_sends_nobody_to_a_place_that_a_stranger_chose(gate):
    client = SmallClient(gate, name="Elsewhere", callback="https://evil.example/landing")
    client.register()
    shown = SmallBrowser(gate.url).get(client.authorize_url(response_type="token"))
    assert (shown.status, "location" in shown.headers) == (400, False)
    assert "Tell evil.example" in shown.text


@pytest.mark.parametrize(
    "uri",
    [
        "http://evil.example/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "https://user@evil.example/cb",
        "https://evil.example/cb#fragment",
        "https://evil.example/a b",
        "https://evil.example./cb",
        "https://evil.example:/cb",
        "https://evil.example:0443/cb",
        "https://evil.example:99999/cb",
        "https://evil.example%2ecom/cb",
        "HTTPS://claude.evil.example/cb",
        "https://Claude.evil.example/cb",
        "https://2130706433/cb",
        "https://127.1/cb",
        "https://0x7f.0.0.1/cb",
        "https://[0:0:0:0:0:0:0:1]/cb",
        "https://*/cb",
        "https://./cb",
        "https://a..b/cb",
        "http://localhost./cb",
        "http://127.1/cb",
        "http://[::ffff:127.0.0.1]/cb",
        "http://127.0.0.1:99999/cb",
        "http://127.0.0.1@evil.example/cb",
        "http://localhost.evil.example/cb",
        "",
        7,
    ],
)
def test_a_redirect_address_that_no_client_can_have_is_not_registered(gate, uri):
    told = SmallClient(gate).register(redirect_uris=[uri])
    assert (told.status, told.json["error"]) == (400, "invalid_redirect_uri")


def test_a_consent_that_another_page_sends_is_refused(gate, client):
    browser = SmallBrowser(gate.url)
    form = browser.get(client.authorize_url()).fields()
    foreign = [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Cookie": None},
        {"Cookie": "agent_gate_sign_in=another"},
    ]
    for headers in foreign:
        assert browser.request("POST", "/authorize", form, headers).status == 403, headers
    assert (
        browser.request("POST", "/authorize", form | {"redirect_uri": "http://127.0.0.1:1/callback"}).status
        == 403
    )
    assert browser.request("POST", "/authorize", form | {"proof": "0" * 64}).status == 403
    assert gate.admin.get("/api/approvals") == []


def test_another_browser_cannot_pick_up_the_answer(gate, client):
    browser, place = begin(client)
    say_yes(gate, browser.get(place).number)
    stranger = SmallBrowser(gate.url)
    assert stranger.get(place).status == 404
    stranger.get(client.authorize_url())
    assert stranger.get(place).status == 404
    assert follow(browser, place).answer()["code"]


def test_a_yes_that_is_tricked_out_of_a_person_for_anothers_browser_lets_nobody_in(gate, client):
    """Two browsers ask the same at once; the person reads the number of their own and answers the other's question."""
    mine, my_place = begin(client)
    theirs = SmallClient(gate)
    theirs.client_id = client.client_id
    attacker, their_place = begin(theirs)
    my_number, their_number = mine.get(my_place).number, attacker.get(their_place).number
    questions = gate.admin.get("/api/approvals")
    assert len(questions) == 2
    wrong = next(one for one in questions if one["call"] in their_place)
    answer = {"verdict": "approve", "number": my_number if my_number != their_number else "00"}
    answered = gate.admin.request("POST", f"/api/approvals/{wrong['id']}", answer)
    assert answered["state"] == "denied"
    assert follow(attacker, their_place).answer()["error"] == "access_denied"


def test_several_questions_at_once_are_no_way_around_the_number(gate, client):
    begin(client)
    asked = question(gate)
    done = gate.admin.request("POST", "/api/approvals", {"ids": [asked["id"]], "verdict": "approve"})
    assert "Say the number" in done["results"][0]["error"]["message"]
    assert question(gate)["state"] == "pending"


def test_a_client_that_takes_anothers_name_gets_an_agent_of_its_own(gate):
    honest = sign_in(gate, name="Claude", callback="https://claude.ai/api/mcp/auth_callback")
    liar = sign_in(gate, name="Claude", callback="https://claude.evil.example/api/mcp/auth_callback")
    local = sign_in(gate, name="Claude")
    names = {one["name"]: one for one in gate.admin.get("/api/agents")}
    assert names["claude/operator"]["signed_in"]["client"] == "claude.ai"
    assert names["evil/operator"]["signed_in"]["client"] == "claude.evil.example"
    assert names["claude/operator-2"]["signed_in"]["client"] == "localhost"
    assert honest.client_id != liar.client_id != local.client_id
    client = SmallClient(gate, name="Taker")
    client.register()
    browser, place = begin(client)
    with pytest.raises(Exception, match="another agent named claude/operator"):
        say_yes(gate, browser.get(place).number, terms={"agent": "claude/operator"})


def test_a_token_of_another_client_or_kind_is_no_refresh_token(gate, client):
    client.redeem(coded(gate, client))
    other = SmallClient(gate, name="Other")
    other.register()
    assert other.refresh(client.tokens["refresh_token"]).json["error"] == "invalid_grant"
    assert client.refresh(client.tokens["access_token"]).json["error"] == "invalid_grant"
    assert client.list_tools(client.tokens["refresh_token"]).status == 401
    unknown = client.refresh(client_id="agcl_unknown")
    assert (unknown.status, unknown.json["error"]) == (401, "invalid_client")
    assert client.refresh(resource="https://elsewhere.example/mcp").json["error"] == "invalid_target"


def test_what_a_family_is_known_by_is_no_token(gate, client):
    client.redeem(coded(gate, client))
    for token in ("family:", "family:" + "0" * 32, ""):
        assert client.list_tools(token or " ").status == 401


def test_documents_and_challenges_say_the_configured_address_whatever_the_host(gate):
    port = urlsplit(gate.url).port
    for host in (f"localhost:{port}", f"127.0.0.1:{port}"):
        told = gate.request(
            "GET", "/.well-known/oauth-authorization-server", token=None, headers={"Host": host}
        )
        assert json.loads(told.body)["issuer"] == gate.url
        assert (
            f'"{gate.url}/.well-known'
            in gate.request("POST", "/mcp", b"{}", token=None, headers={"Host": host}).headers[
                "www-authenticate"
            ]
        )
    assert gate.request("GET", "/authorize", token=None, headers={"Host": "evil.example"}).status == 403


def test_a_verifier_is_compared_as_rfc_7636_says():
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == (
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )


def test_a_gateway_that_reaches_out_to_nobody_knows_only_clients_that_registered(gate, client):
    document = gate.request("GET", "/.well-known/oauth-authorization-server", token=None).json
    assert document["client_id_metadata_document_supported"] is False
    shown = SmallBrowser(gate.url).get(client.authorize_url(client_id="https://client.example/c.json"))
    assert shown.status == 400
    assert "auth.client_documents is false" in shown.text

"""A client signs in by its person's login at a real OpenID provider, and comes in as that person's agent."""

import pytest
from tests.oidc.agents_house import PersonWithAgent, configure, login_gate, tools_of
from tests.oidc.provider_house import PersonAtProvider
from tests.sign_in.small_client import SmallBrowser, follow, question, say_yes
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def gate(tmp_path_factory, api, provider):
    with login_gate(tmp_path_factory.mktemp("logins"), api, provider) as started:
        yield started


@pytest.fixture(autouse=True)
def _nothing_left_open(request):
    yield
    if "gate" in request.fixturenames:
        gate = request.getfixturevalue("gate")
        for asked in gate.admin.get("/api/approvals"):
            gate.admin.request("POST", f"/api/approvals/{asked['id']}", {"verdict": "deny"})


def test_a_login_is_the_yes_for_what_the_groups_of_the_person_give(gate, provider):
    provider.tell_of("anna", groups="sre")
    anna = PersonWithAgent(gate, provider, "anna")
    client = anna.sign_in()
    assert gate.admin.get("/api/approvals") == []
    assert {"home_act", "notes_write"} <= tools_of(client)
    assert anna.agent["name"] == "tester/anna@example.test"
    assert (anna.agent["mode"], anna.agent["namespaces"]) == ("full", None)


def test_a_group_narrows_the_sources_the_mode_and_the_days(gate, provider):
    provider.tell_of("bert", groups="writers")
    bert = PersonWithAgent(gate, provider, "bert")
    client = bert.sign_in()
    assert (bert.agent["mode"], bert.agent["namespaces"]) == ("proxy", ["notes"])
    assert client.tokens["scope"] == "mcp mcp:notes"
    signed = bert.agent["signed_in"]
    assert signed["expires_at"] - signed["since"] == pytest.approx(7 * 86_400, abs=5)


def rows_of(gate, agent):
    return [row for row in gate.admin.get("/api/calls?limit=200")["rows"] if row["caller"] == agent]


def test_the_sign_in_is_on_record_with_its_person_and_what_it_gave(gate, provider):
    provider.tell_of("cora", groups="writers")
    PersonWithAgent(gate, provider, "cora").sign_in()
    [mine] = [row for row in rows_of(gate, "sign-in") if row["body"].get("person") == "cora@example.test"]
    assert gate.story(mine["call"]) == ["dispatching", "completed"]
    given = mine["body"]["arguments"]
    assert (given["namespaces"], given["mode"], given["days"]) == (["notes"], "proxy", 7)


def test_the_calls_of_the_agent_carry_its_person_and_their_groups(gate, provider):
    provider.tell_of("dirk", groups="sre,night-shift")
    client = PersonWithAgent(gate, provider, "dirk").sign_in()
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "home_act", "arguments": {}},
    }
    assert client.mcp(call).status == 200
    row = next(row for row in rows_of(gate, "tester/dirk@example.test") if row["state"] == "dispatching")
    assert row["body"]["person"] == "dirk@example.test"
    assert row["body"]["groups"] == ["night-shift", "sre"]


def test_what_the_groups_do_not_give_people_are_asked_about_and_the_agent_is_the_persons(gate, provider):
    provider.tell_of("edda", groups="staff")
    edda = PersonWithAgent(gate, provider, "edda")
    back = edda.log_in()
    asked = question(gate)
    assert asked["wants_number"]
    assert "edda@example.test, who logged in at the provider" in asked["sentence"]
    assert edda.agent is None
    say_yes(gate, edda.browser.get(back.location).number, terms={"namespaces": ["home"]})
    edda.redeem(back.location)
    assert edda.agent["name"] == "tester/edda@example.test"
    assert edda.agent["namespaces"] == ["home"]


def test_asking_for_more_sources_than_the_groups_give_is_a_question(gate, provider):
    provider.tell_of("fred", groups="writers")
    fred = PersonWithAgent(gate, provider, "fred")
    back = fred.log_in(scope="mcp mcp:notes mcp:home")
    assert question(gate)["arguments"]["namespaces"] == ["home", "notes"]
    say_yes(gate, fred.browser.get(back.location).number)
    fred.redeem(back.location)
    assert fred.agent["namespaces"] == ["home", "notes"]


def test_somebody_in_no_group_at_all_is_turned_away_and_nobody_is_asked(gate, provider):
    provider.tell_of("gerd", groups="others")
    reply = PersonWithAgent(gate, provider, "gerd").log_in()
    assert reply.status == 403
    assert "is in no group that may come in here" in reply.text
    assert gate.admin.get("/api/approvals") == []


def test_a_person_with_no_role_has_agents_and_not_the_page(gate, provider):
    provider.tell_of("hans", groups="writers")
    assert PersonWithAgent(gate, provider, "hans").sign_in()
    assert PersonAtProvider(gate, provider, "hans").log_in().status == 403


def test_both_ways_stand_on_the_page_and_people_can_be_asked_instead(gate, provider):
    ida = PersonWithAgent(gate, provider, "ida")
    shown = ida.browser.get(ida.client.authorize_url())
    assert "Log in with 127.0.0.1" in shown.text
    sent = ida.browser.press_continue(shown, way="people")
    say_yes(gate, ida.browser.get(sent.location).number)
    assert ida.client.redeem(follow(ida.browser, sent.location).answer()["code"]).status == 200


def test_two_people_whose_names_are_written_alike_have_two_agents(gate, provider):
    provider.tell_of("jo.1", groups="sre", email="jo+1@example.test")
    provider.tell_of("jo.2", groups="sre", email="jo-1@example.test")
    first = PersonWithAgent(gate, provider, "jo.1").sign_in()
    second = PersonWithAgent(gate, provider, "jo.2").sign_in()
    rows = {
        row["name"]: row["signed_in"]["person"]
        for row in gate.admin.get("/api/agents")
        if "/jo-1" in row["name"]
    }
    assert rows == {
        "tester/jo-1@example.test": "jo+1@example.test",
        "tester/jo-1@example.test-2": "jo-1@example.test",
    }
    assert first.list_tools().status == second.list_tools().status == 200


# What the rules say


RULED = """
rules:
  - {pattern: "agents__sign_in(evil.example)", action: deny}
  - {pattern: "agents__sign_in(strict.example)", action: ask, approvers: [operator]}
  - {pattern: "agents__sign_in(own.example)", action: ask, approvers: {own: true}}
  - {pattern: "agents__sign_in(others.example)", action: ask, approvers: {not_own: true}}
defaults: [{pattern: "*", action: allow}]
"""


@pytest.fixture(scope="module")
def ruled(tmp_path_factory, api, provider):
    with login_gate(tmp_path_factory.mktemp("ruled"), api, provider, permissions=RULED) as started:
        yield started


@pytest.mark.parametrize("host", ["strict.example", "others.example"])
def test_a_rule_that_wants_the_yes_of_others_is_asked_all_the_same(ruled, provider, host):
    provider.tell_of("kai", groups="sre")
    kai = PersonWithAgent(ruled, provider, "kai", callback=f"https://{host}/back")
    back = kai.log_in()
    assert question(ruled)["arguments"]["person"] == "kai@example.test"
    ruled.answer("deny")
    assert follow(kai.browser, back.location).answer()["error"] == "access_denied"


def test_a_rule_that_lets_the_person_answer_is_content_with_their_login(ruled, provider):
    provider.tell_of("lea", groups="sre")
    lea = PersonWithAgent(ruled, provider, "lea", callback="https://own.example/back")
    lea.sign_in()
    assert lea.agent["name"] == "own/lea@example.test"


def test_a_rule_that_denies_a_destination_denies_it_to_everybody(ruled, provider):
    provider.tell_of("mia", groups="sre")
    reply = PersonWithAgent(ruled, provider, "mia", callback="https://evil.example/back").log_in()
    assert reply.status == 403
    assert ruled.admin.get("/api/approvals") == []


# What an attacker tries


def test_a_login_counts_only_in_the_browser_that_began_it(gate, provider):
    """Neither does the victim's client come in as the attacker, nor the attacker's as the victim."""
    provider.tell_of("attacker", groups="sre")
    attacker = PersonWithAgent(gate, provider, "attacker")
    link = attacker.there.consent(attacker.begin())
    victim = PersonWithAgent(gate, provider, "victim")
    assert victim.come_back(link).status == 400
    victim.begin()
    assert victim.come_back(link).status == 400
    assert attacker.come_back(link).status == 303


def test_a_page_elsewhere_keeps_nobody_from_signing_in(gate, provider):
    for number in range(15):
        assert SmallBrowser(gate.url).get(f"/oidc/callback?code=x&state={number}").status == 400
    provider.tell_of("sven", groups="sre")
    PersonWithAgent(gate, provider, "sven").sign_in()


def test_a_login_counts_once(gate, provider):
    provider.tell_of("nina", groups="sre")
    nina = PersonWithAgent(gate, provider, "nina")
    link = nina.there.consent(nina.begin())
    assert nina.come_back(link).status == 303
    assert nina.come_back(link).status == 400


def test_two_logins_of_one_browser_do_not_take_each_others_codes(gate, provider):
    provider.tell_of("otto", groups="sre")
    first = PersonWithAgent(gate, provider, "otto")
    second = PersonWithAgent(gate, provider, "otto", client="Other")
    second.browser = first.browser
    one, two = first.there.consent(first.begin()), second.there.consent(second.begin())
    swapped = one.replace(
        one.partition("code=")[2].partition("&")[0], two.partition("code=")[2].partition("&")[0]
    )
    assert first.come_back(swapped).status == 400
    assert first.come_back(one).status == 400


def test_an_answer_that_names_another_issuer_lets_nobody_in_and_goes_nowhere(gate, provider):
    provider.tell_of("paul", groups="sre")
    paul = PersonWithAgent(gate, provider, "paul")
    link = paul.there.consent(paul.begin())
    reply = paul.come_back(link.replace("iss=", "iss=https%3A%2F%2Fevil.example&was="))
    assert (reply.status, "location" in reply.headers) == (400, False)
    assert paul.agent is None


def test_a_form_of_another_page_sends_nobody_to_the_provider(gate, provider):
    rosa = PersonWithAgent(gate, provider, "rosa")
    shown = rosa.browser.get(rosa.client.authorize_url())
    form = shown.fields() | {"way": "provider"}
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert rosa.browser.request("POST", "/authorize", form, foreign).status == 403
    assert rosa.browser.request("POST", "/authorize", form | {"proof": "0" * 64}).status == 403
    other = SmallBrowser(gate.url)
    other.get(rosa.client.authorize_url())
    assert other.request("POST", "/authorize", form).status == 403


@pytest.mark.parametrize("query", ["", "?state=x", "?code=x&state=", "?error=access_denied"])
def test_an_answer_to_nothing_is_told_so_and_echoes_nothing(gate, query):
    reply = SmallBrowser(gate.url).request(
        "GET", f"/oidc/callback{query}&echo=<b>" if query else "/oidc/callback"
    )
    assert reply.status in (400, 429)
    assert "<b>" not in reply.text


def test_nothing_of_a_login_that_is_under_way_stands_in_the_open(gate, provider):
    sina = PersonWithAgent(gate, provider, "sina")
    url = sina.begin()
    nonce, state = (url.partition(f"{name}=")[2].partition("&")[0] for name in ("nonce", "state"))
    kept = b"".join(path.read_bytes() for path in gate.folder.rglob("*.db*"))
    assert nonce.encode() not in kept
    assert state.encode() not in kept


# What the provider takes back


def test_a_logout_at_the_provider_ends_the_agents_of_that_login_at_once(gate, provider):
    provider.tell_of("theo", groups="sre")
    theo = PersonWithAgent(gate, provider, "theo")
    client = theo.sign_in()
    assert client.list_tools().status == 200
    theo.there.log_out()
    wait_until(lambda: client.list_tools().status == 401)
    assert client.refresh().json["error"] == "invalid_grant"


def test_somebody_whom_the_provider_dropped_is_out_at_the_next_refresh(gate, provider):
    provider.tell_of("ulla", groups="sre")
    client = PersonWithAgent(gate, provider, "ulla").sign_in()
    assert client.refresh().status == 200
    provider.tell_of("ulla", gone="yes")
    assert client.refresh().json["error"] == "invalid_grant"
    assert client.list_tools().status == 401


def test_an_agent_sees_at_the_next_refresh_what_the_groups_give_then(gate, provider):
    provider.tell_of("vera", groups="sre")
    vera = PersonWithAgent(gate, provider, "vera")
    client = vera.sign_in()
    provider.tell_of("vera", groups="writers")
    assert client.refresh().json["scope"] == "mcp mcp:notes"
    assert vera.agent["namespaces"] == ["notes"]
    provider.tell_of("vera", groups="staff")
    assert client.refresh().json["error"] == "invalid_grant"


def test_what_people_said_yes_to_outlives_a_change_of_groups(gate, provider):
    provider.tell_of("willi", groups="staff")
    willi = PersonWithAgent(gate, provider, "willi")
    back = willi.log_in()
    say_yes(gate, willi.browser.get(back.location).number)
    client = willi.redeem(back.location)
    provider.tell_of("willi", groups="sre")
    assert client.refresh().status == 200
    assert willi.agent["namespaces"] is None


def test_without_its_provider_a_sign_in_is_refreshed_no_more(provider, api, tmp_path):
    with login_gate(tmp_path, api, provider) as gate:
        provider.tell_of("xaver", groups="sre")
        xaver = PersonWithAgent(gate, provider, "xaver")
        client = xaver.sign_in()
        (gate.folder / "config.yaml").write_text(gate.before)
        gate.admin.request("POST", "/api/reload", {})
        assert "Log in with" not in xaver.browser.get(client.authorize_url(state="again")).text
        assert client.refresh().json["error"] == "invalid_grant"


def test_the_star_names_everybody_who_may_come_in(provider, api, tmp_path):
    with login_gate(tmp_path, api, provider, agents="{'*': {namespaces: [home]}}") as gate:
        provider.tell_of("yara", groups="staff")
        yara = PersonWithAgent(gate, provider, "yara")
        yara.sign_in()
        assert yara.agent["namespaces"] == ["home"]
        provider.tell_of("zoe", groups="others")
        assert PersonWithAgent(gate, provider, "zoe").log_in().status == 403
        configure(gate, provider, agents="{}")
        provider.tell_of("yves", groups="sre")
        PersonWithAgent(gate, provider, "yves").log_in()
        assert question(gate)["arguments"]["person"] == "yves@example.test"

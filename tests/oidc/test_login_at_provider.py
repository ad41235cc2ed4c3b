"""People log in to the operator's page at a real OpenID provider."""

import re

import pytest
from tests.oidc.provider_house import PersonAtProvider, configure, said_on, vouching_gate
from tests.surfaces.admin.admin_gate import Browser, browser
from tests.waiting import wait_until

PEOPLE = "people: {olga: {login: olga@example.test, role: operator}, anna: {login: somebody-else}}\n"


@pytest.fixture(scope="module")
def gateway(provider, tmp_path_factory):
    with vouching_gate(tmp_path_factory.mktemp("oidc"), provider, PEOPLE) as started:
        yield started


def logged_in(gateway, provider, name, **said):
    provider.tell_of(name, **said)
    person = PersonAtProvider(gateway, provider, name)
    reply = person.log_in()
    assert reply.status == 303, said_on(reply)
    return person.page


def test_somebody_in_a_group_with_a_role_logs_in_and_may_do_what_it_may(gateway, provider):
    page = logged_in(gateway, provider, "carla", groups="house-team,other")
    me = page.get("/api/me")
    assert me["person"] == "carla@example.test"
    assert (me["may"], me["namespaces"]) == (["view", "answer"], ["house"])


def test_somebody_under_people_is_known_by_their_login(gateway, provider):
    page = logged_in(gateway, provider, "olga")
    assert page.get("/api/me")["person"] == "olga"
    assert page.get("/api/me")["may"] == ["view", "answer", "operate"]


def test_somebody_in_no_group_that_may_come_in_is_turned_away_with_the_reason(gateway, provider):
    provider.tell_of("dora", groups="others")
    reply = PersonAtProvider(gateway, provider, "dora").log_in()
    assert reply.status == 403
    assert "is in no group that may come in here" in said_on(reply)


def test_an_address_that_the_provider_did_not_verify_names_nobody(gateway, provider):
    provider.tell_of("emil", groups="sre", verified="false")
    reply = PersonAtProvider(gateway, provider, "emil").log_in()
    assert reply.status == 401
    assert "verified" in said_on(reply)


@pytest.mark.parametrize("name", ["operator", "anna"])
def test_nobody_takes_the_name_of_somebody_else(gateway, provider, name):
    provider.tell_of("mallory", groups="sre", email=name)
    reply = PersonAtProvider(gateway, provider, "mallory").log_in()
    assert reply.status == 403
    assert "Somebody else is called" in said_on(reply)


def test_a_name_that_the_provider_gives_to_somebody_else_later_does_not_pass_on(gateway, provider):
    logged_in(gateway, provider, "tina", groups="sre")
    provider.tell_of("successor", groups="sre", email="tina@example.test")
    reply = PersonAtProvider(gateway, provider, "successor").log_in()
    assert reply.status == 403
    assert "called somebody else tina@example.test before" in said_on(reply)
    logged_in(gateway, provider, "tina", groups="sre")


def test_whom_the_operator_names_by_their_login_may_come_from_another_account(gateway, provider):
    logged_in(gateway, provider, "olga")
    provider.tell_of("olga-anew", email="olga@example.test")
    person = PersonAtProvider(gateway, provider, "olga-anew")
    assert person.log_in().status == 303
    assert person.page.get("/api/me")["person"] == "olga"
    provider.tell_of("olga")


def test_an_answer_of_somebody_who_logged_in_there_carries_their_name(gateway, provider):
    page = logged_in(gateway, provider, "frida", groups="house-team")
    gateway.call("light_set", {"room": "porch"}, wait=0)
    [question] = gateway.admin.get("/api/approvals")
    page.post(f"/api/approvals/{question['id']}", {"verdict": "approve", "lifetime": "hour"})
    assert gateway.admin.get(f"/api/approvals/{question['id']}")["answered_by"] == "frida@example.test"
    assert gateway.call("light_set", {"room": "porch"}, wait=5).status == 200


def test_logging_out_ends_the_session_and_leads_to_the_providers_own_logout(gateway, provider):
    page = logged_in(gateway, provider, "gina", groups="staff")
    left = page.send("DELETE", "/api/session")
    assert left.json["log_out_at"].startswith(f"{provider.issuer}/session/end?")
    assert "id_token_hint=" in left.json["log_out_at"]
    assert page.send("GET", "/api/me").status == 401


def test_a_logout_at_the_provider_ends_the_session_here(gateway, provider):
    provider.tell_of("hugo", groups="staff")
    person = PersonAtProvider(gateway, provider, "hugo")
    assert person.log_in().status == 303
    assert person.page.get("/api/me")["person"] == "hugo@example.test"
    person.there.log_out()
    wait_until(lambda: person.page.send("GET", "/api/me").status == 401)


def test_a_link_to_another_device_leads_no_further_than_the_login_it_came_of(gateway, provider):
    provider.tell_of("pia", groups="staff")
    person = PersonAtProvider(gateway, provider, "pia")
    assert person.log_in().status == 303
    phone = Browser(gateway.announced["admin"])
    opened = phone.follow(person.page.post("/api/logins", {})["url"])
    assert (opened.status, opened.json["person"]) == (200, "pia@example.test")
    assert int(re.search("Max-Age=([0-9]+)", opened.headers["set-cookie"])[1]) <= 8 * 3600
    third = Browser(gateway.announced["admin"])
    assert third.follow(phone.post("/api/logins", {})["url"]).status == 200
    person.there.log_out()
    for page in (person.page, phone, third):
        wait_until(lambda page=page: page.send("GET", "/api/me").status == 401)


def test_who_is_here_by_the_providers_word_alone_makes_no_token_that_outlasts_it(gateway, provider):
    page = logged_in(gateway, provider, "rosa", groups="sre")
    refused = page.send("POST", "/api/operators", {"name": "for-later"})
    assert (refused.status, "by the provider's word alone" in refused.json["error"]["message"]) == (403, True)
    listed = logged_in(gateway, provider, "olga")
    assert listed.send("POST", "/api/operators", {"name": "of-olga"}).status == 201


def test_a_session_ends_when_its_provider_is_not_in_use_any_more(provider, tmp_path):
    with vouching_gate(tmp_path, provider) as gateway:
        page = logged_in(gateway, provider, "ines", groups="sre")
        assert page.get("/api/me")["may"][-1] == "operate"
        configure(gateway, provider, roles="{sre: {role: viewer}}")
        assert page.get("/api/me")["may"] == ["view"]
        config = gateway.folder / "config.yaml"
        config.write_text(config.read_text().partition("\nauth:")[0])
        gateway.admin.request("POST", "/api/reload", {})
        assert page.send("GET", "/api/me").status == 401
        assert page.send("GET", "/oidc/login").status == 404


def test_the_providers_tokens_stand_nowhere_in_the_open(gateway, provider):
    page = logged_in(gateway, provider, "jana", groups="staff")
    logged_in(gateway, provider, "jana", groups="staff")
    token = page.send("DELETE", "/api/session").json["log_out_at"].partition("id_token_hint=")[2]
    files = [path for path in gateway.folder.rglob("*") if path.is_file()]
    assert [path for path in files if token[-40:].encode() in path.read_bytes()] == []


# What an attacker tries


def test_a_code_counts_only_in_the_browser_that_began(gateway, provider):
    """A link with somebody else's code and state logs nobody in: neither the victim as the attacker nor vice versa."""
    provider.tell_of("attacker", groups="sre")
    attacker = PersonAtProvider(gateway, provider, "attacker")
    link = attacker.there.consent(attacker.begin())
    victim = PersonAtProvider(gateway, provider, "victim")
    assert victim.come_back(link).status == 401
    victim.begin()
    assert victim.come_back(link).status == 401


def test_a_code_is_good_once(gateway, provider):
    provider.tell_of("karl", groups="staff")
    person = PersonAtProvider(gateway, provider, "karl")
    link = person.there.consent(person.begin())
    assert person.come_back(link).status == 303
    assert person.come_back(link).status == 400


def test_a_page_elsewhere_keeps_nobody_from_logging_in(gateway, provider):
    """It can have a browser ask for any address, but without the cookie that a login has."""
    for number in range(15):
        stray = Browser(gateway.announced["admin"]).send("GET", f"/oidc/callback?code=x&state={number}")
        assert stray.status == 401
    logged_in(gateway, provider, "sven", groups="staff")


def test_an_answer_that_names_another_issuer_is_refused_before_its_code_is_used(gateway, provider):
    provider.tell_of("lena", groups="staff")
    person = PersonAtProvider(gateway, provider, "lena")
    link = person.there.consent(person.begin())
    assert "iss=" in link
    forged = link.replace("iss=", "iss=https%3A%2F%2Fevil.example&was=")
    reply = person.come_back(forged)
    assert (reply.status, "another authorization server" in said_on(reply)) == (400, True)
    assert person.come_back(link).status == 303


def test_a_session_is_never_one_that_the_browser_brought(gateway, provider):
    """Nobody can fix a session beforehand: what a login opens is new, whatever cookie came with it."""
    provider.tell_of("mona", groups="staff")
    person = PersonAtProvider(gateway, provider, "mona")
    person.page.cookie = f"{browser(gateway).cookie.partition('=')[0]}=fixed-by-somebody"
    assert person.log_in().status == 303
    assert "fixed-by-somebody" not in person.page.cookie
    assert person.page.get("/api/me")["person"] == "mona@example.test"


def test_over_tls_a_login_is_in_a_cookie_that_no_neighbour_of_the_host_can_set(provider, tmp_path):
    more = "people: {}\n"
    with vouching_gate(tmp_path, provider, more) as gateway:
        config = gateway.folder / "config.yaml"
        config.write_text(
            config.read_text().replace("admin: {", "admin: {public_url: https://gate.example, ")
        )
        gateway.admin.request("POST", "/api/reload", {})
        browser = Browser(gateway.announced["admin"])
        begun = browser.send("GET", "/oidc/login", Host="gate.example")
        said = begun.headers["set-cookie"]
        assert said.startswith("__Host-agent_gate_oidc=")
        assert {"Path=/", "Secure", "HttpOnly", "SameSite=Lax"} <= set(said.split("; "))
        state = re.search("state=([^&]+)", begun.headers["location"])[1]
        tossed = f"agent_gate_oidc={said.partition('=')[2].partition(';')[0]}"
        path = f"/oidc/callback?code=x&state={state}"
        back = browser.send("GET", path, Host="gate.example", Cookie=tossed)
        assert "not begun in this browser" in said_on(back)


@pytest.mark.parametrize("cookie", ["", "agent_gate_oidc=x", "agent_gate_oidc=" + "A" * 400])
def test_a_cookie_that_was_not_sealed_here_begins_nothing(gateway, cookie):
    reply = Browser(gateway.announced["admin"]).send(
        "GET", "/oidc/callback?code=x&state=y", Cookie=cookie or None
    )
    assert reply.status in (401, 429)
    assert b"code" not in reply.body.lower() or b"Begin again" in reply.body


@pytest.mark.parametrize("token", ["", "x.y.z", "eyJhbGciOiJub25lIn0.e30.eA"])
def test_a_logout_that_the_provider_did_not_sign_ends_nothing(gateway, provider, token):
    page = logged_in(gateway, provider, "nora", groups="staff")
    browser = Browser(gateway.announced["admin"])
    connection = browser.connection()
    form = {"Content-Type": "application/x-www-form-urlencoded", "Host": browser.host}
    connection.request("POST", "/oidc/logout", f"logout_token={token}", form)
    assert connection.getresponse().status == 400
    connection.close()
    assert page.get("/api/me")["person"] == "nora@example.test"

"""Viewers look, approvers answer, operators do everything: on the page, in the terminal, over links and in the API."""

import os
from urllib.parse import urlsplit

import pytest
from tests.surfaces.admin.admin_gate import Browser, browser, gate
from tests.ui.test_ui_answers import Receiver

from agent_gate.errors import GatewayError

PEOPLE = """\
people:
  olga: {login: olga}
  anna: {login: anna, role: approver}
  nils: {login: nils, role: approver, namespaces: [elsewhere]}
  vic: {login: vic, role: viewer}
"""
VIEWER_HERE = f"  uwe: {{uid: {os.getuid()}, role: viewer}}\n"
CHANGES_NOTHING = {("POST", "/api/explain"), ("POST", "/api/policy/simulate"), ("POST", "/api/logins")}
ANSWERS = {("POST", "/api/approvals"), ("POST", "/api/approvals/{id}"), ("DELETE", "/api/grants/{id}")}
OWN_DEVICES = {("POST", "/api/devices"), ("DELETE", "/api/devices/{id}"), ("POST", "/api/devices/{id}/try")}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with gate(tmp_path_factory.mktemp("roles"), PEOPLE) as started:
        yield started


def me(page):
    return page.get("/api/me")


def test_everybody_hears_what_they_may_do(gateway):
    told = {name: me(browser(gateway, name)) for name in ("olga", "anna", "nils", "vic")}
    assert told["olga"]["may"] == ["view", "answer", "operate"]
    assert told["anna"]["may"] == ["view", "answer"]
    assert (told["nils"]["may"], told["nils"]["namespaces"]) == (["view", "answer"], ["elsewhere"])
    assert told["vic"]["may"] == ["view"]
    assert told["olga"]["passphrase"] is False


def test_every_route_says_what_it_needs_and_only_these_need_less_than_their_method_says(gateway):
    paths = gateway.admin.get("/openapi.json")["paths"]
    needs = {
        (method.upper(), path): operation["x-role"]
        for path, operations in paths.items()
        for method, operation in operations.items()
    }
    lower = {route for route, role in needs.items() if route[0] != "GET" and role == "viewer"}
    assert lower == CHANGES_NOTHING
    assert needs["GET", "/api/entries"] == needs["GET", "/api/entries/held"] == "operator"
    assert needs["GET", "/api/sources/{key}/log"] == "operator"
    assert {route for route, role in needs.items() if role == "approver"} == ANSWERS | OWN_DEVICES
    assert {role for (method, _path), role in needs.items() if method == "GET"} <= {"viewer", "operator"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/reload"),
        ("POST", "/api/agents"),
        ("POST", "/api/operators"),
        ("POST", "/api/entries/servers/x"),
        ("PUT", "/api/secrets/x"),
        ("DELETE", "/api/secrets/x"),
        ("POST", "/api/policy/rules"),
        ("POST", "/api/vault/rotate"),
    ],
)
@pytest.mark.parametrize("login", ["anna", "vic"])
def test_who_is_no_operator_changes_nothing(gateway, login, method, path):
    reply = browser(gateway, login).send(method, path, {})
    assert reply.status == 403
    assert "needs the role operator" in reply.json["error"]["message"]


def asked(gateway):
    assert gateway.call("light_set", {"room": os.urandom(4).hex()}, wait=0).status == 202
    return max(gateway.admin.get("/api/approvals"), key=lambda one: one["asked_at"])["id"]


def test_a_viewer_sees_a_question_and_cannot_answer_it(gateway):
    question = asked(gateway)
    page = browser(gateway, "vic")
    assert page.get(f"/api/approvals/{question}")["state"] == "pending"
    assert page.send("POST", f"/api/approvals/{question}", {"verdict": "approve"}).status == 403
    many = page.send("POST", "/api/approvals", {"ids": [question], "verdict": "deny"})
    assert many.status == 403
    assert gateway.admin.get(f"/api/approvals/{question}")["state"] == "pending"


def test_an_approver_answers_for_its_namespaces_alone(gateway):
    question = asked(gateway)
    narrow = browser(gateway, "nils")
    refused = narrow.send("POST", f"/api/approvals/{question}", {"verdict": "approve"})
    assert (refused.status, "not for" in refused.json["error"]["message"]) == (403, True)
    many = narrow.post("/api/approvals", {"ids": [question], "verdict": "approve"})
    assert many["results"][0]["error"]["code"] == "FORBIDDEN"
    assert (
        browser(gateway, "anna").post(f"/api/approvals/{question}", {"verdict": "approve"})["state"]
        == "approved"
    )


def test_an_approver_makes_links_for_nobody_else(gateway):
    page = browser(gateway, "anna")
    assert page.send("POST", "/api/logins", {"login": "olga"}).status == 403
    assert page.post("/api/logins", {})["person"] == "anna"


def test_who_comes_in_as_the_operator_can_log_in_under_any_name_and_no_other_person(gateway):
    assert browser(gateway).post("/api/logins", {"login": "anna"})["person"] == "anna"
    assert browser(gateway, "olga").send("POST", "/api/logins", {"login": "anna"}).status == 403
    refused = browser(gateway, "olga").send("POST", "/api/operators", {"name": "other", "login": "anna"})
    assert refused.status == 403


def test_the_terminal_is_held_to_the_role_of_its_user(tmp_path):
    with gate(tmp_path, PEOPLE + VIEWER_HERE) as gateway:
        assert gateway.admin.get("/api/me")["may"] == ["view"]
        question = asked(gateway)
        assert_refused(gateway, "POST", f"/api/approvals/{question}", {"verdict": "approve"})
        assert_refused(gateway, "POST", "/v1/pairings", {})


def test_a_link_in_a_message_is_held_to_the_role_of_its_person(tmp_path):
    with Receiver() as receiver:
        hook = f"channels: [{{type: webhook, format: json, url: '{receiver.url}/hook', person: vic}}]\n"
        with gate(tmp_path, PEOPLE + hook) as gateway:
            question = asked(gateway)
            answer = urlsplit(receiver.links()["once"]).path
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            refused = Browser(gateway.announced["admin"]).send("POST", answer, **form)
            assert (refused.status, b"needs the role approver" in refused.body) == (403, True)
            assert gateway.admin.get(f"/api/approvals/{question}")["state"] == "pending"


def assert_refused(gateway, method, path, body):
    with pytest.raises(GatewayError) as refused:
        gateway.admin.request(method, path, body)
    assert refused.value.code == "FORBIDDEN"


NAMING = """\
defaults: [{pattern: "*", action: ask}]
rules:
  - {pattern: "siren", action: ask, approvers: [anna]}
  - {pattern: "light_set(*)", action: ask, approvers: {count: 2}}
"""


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    with gate(tmp_path_factory.mktemp("named"), PEOPLE, NAMING) as started:
        yield started


@pytest.mark.parametrize("login", ["olga", "anna", "nils", "vic"])
@pytest.mark.parametrize("tool", ["light_set", "light_get", "siren"])
def test_a_question_says_which_answers_a_person_would_not_be_refused(named, login, tool):
    named.call(tool, {"room": os.urandom(4).hex()}, wait=0)
    question = max(named.admin.get("/api/approvals"), key=lambda one: one["asked_at"])["id"]
    page = browser(named, login)

    def refused(verdict):
        return page.send("POST", f"/api/approvals/{question}", {"verdict": verdict}).status >= 400

    told = page.get(f"/api/approvals/{question}")["you_may"]
    assert refused("approve") == ("approve" not in told)
    again = page.get(f"/api/approvals/{question}")
    if again["state"] == "pending":
        assert (again["you_may"] == ["deny"]) == bool(again["yeses"])
        assert refused("approve") == ("approve" not in again["you_may"])
        assert refused("deny") == ("deny" not in again["you_may"])


def test_a_grant_says_whether_a_person_may_take_it_back(gateway):
    question = asked(gateway)
    gateway.admin.request("POST", f"/api/approvals/{question}", {"verdict": "approve", "lifetime": "hour"})
    [grant] = gateway.admin.get("/api/grants")
    told = {name: browser(gateway, name).get("/api/grants")[0]["you_may"] for name in ("anna", "nils", "vic")}
    assert told == {"anna": ["revoke"], "nils": [], "vic": []}
    replies = [
        browser(gateway, name).send("DELETE", f"/api/grants/{grant['id']}")
        for name in ("vic", "nils", "anna")
    ]
    assert [reply.status for reply in replies] == [403, 403, 200]

"""What a person needs to judge: dangers of questions, and troubles by cause with what mends them."""

from dataclasses import replace

import pytest
from tests.gateway import Api, in_front_of
from tests.ui.ui_house import CONFIG
from tests.waiting import wait_until

from agent_gate.peers.records import Peer
from agent_gate.surfaces.admin.needs import ended

TOOLS = """\
tools:
  mail_send:
    description: "Send a mail"
    args:
      to: {required: true}
      subject: {required: false}
      body: {required: false, text: true}
    request: {method: POST, path: /mail}
    destructive: true
    open_world: true
"""
PERMISSIONS = 'defaults: [{pattern: "*", action: ask}]\n'
MORE = """\
people:
  anna: {login: anna}
servers:
  gone: {command: /nonexistent/server}
  away: {url: "http://127.0.0.1:9/mcp"}
  keyless: {url: "http://127.0.0.1:9/mcp", auth: {type: bearer, token: "vault:lost-key"}}
"""


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judging")
    with Api() as api, in_front_of(api, folder, CONFIG, TOOLS, PERMISSIONS, more=MORE) as gateway:
        yield gateway


def asked(gate, **arguments):
    gate.call("mail_send", arguments, wait=0)
    [row] = gate.admin.get("/api/approvals?brief=1")
    return row


def answer(gate, row, verdict):
    return gate.admin.request("POST", f"/api/approvals/{row['id']}", {"verdict": verdict})


def test_a_question_names_its_dangers_and_after_a_yes_is_no_longer_the_first(gate):
    row = asked(gate, to="anna@example.org")
    assert row["risks"] == ["destructive", "outward", "first"]
    answer(gate, row, "approve")
    again = wait_until(
        lambda: gate.admin.get("/api/calls?by=call&state=completed")["calls"], "the call that was approved"
    )
    assert again[0]["tool"] == "mail_send"


def test_a_row_has_every_value_in_the_order_the_tool_declares(gate):
    row = asked(gate, to="ben@example.org", subject="Hi", body="x" * 500)
    try:
        assert row["line"] == f"mail_send(to=ben@example.org, subject=Hi, body={'x' * 60}…)"
        whole = gate.admin.get(f"/api/approvals/{row['id']}")
        assert [one["name"] for one in whole["details"]] == ["to", "subject", "body"]
        assert whole["description"] == "Send a mail"
        assert {"destructive", "open_world"} <= set(whole["traits"])
        assert whole["may_answer"] == ["anna", "operator"]
    finally:
        answer(gate, row, "deny")


def test_a_trouble_is_told_by_its_cause_with_what_mends_it(gate):
    def kinds():
        needs = gate.admin.get("/api/now")["needs"]
        found = {key: need for need in needs for key in need["sources"]}
        return found if {"gone", "away"} <= set(found) else None

    found = wait_until(kinds, "both troubles")
    assert found["gone"]["kind"] == "program"
    assert "Install the program" in found["gone"]["fix"]
    assert found["away"]["kind"] == "address"
    assert found["away"]["since"] > 0


def test_a_source_says_itself_what_its_trouble_is_and_what_mends_it(gate):
    def gone():
        [found] = [one for one in gate.admin.get("/api/sources") if one["key"] == "gone"]
        return found if found["status"] == "failed" else None

    found = wait_until(gone, "a program that does not run")
    assert (found["trouble"], "Install the program" in found["fix"]) == ("program", True)


def test_a_secret_that_nobody_set_is_a_thing_to_do_until_it_is_set(gate):
    def named():
        return [one for one in gate.admin.get("/api/now")["needs"] if "lost-key" in str(one)]

    [need] = wait_until(named, "a missing secret")
    assert need["sources"] == ["keyless"]
    gate.admin.request("PUT", "/api/secrets/lost-key", {"value": "found"})
    wait_until(lambda: not named(), "nothing said of a secret that is set")


def test_of_a_paired_machine_only_an_ended_certificate_is_a_thing_to_do():
    peer = Peer(
        name="garden-pi",
        component_type="tool_host",
        endpoint="",
        identity_key="",
        status="active",
        paired_at=0.0,
        not_after=100.0,
    )
    others = [replace(peer, not_after=300.0), replace(peer, status="revoked"), replace(peer, not_after=0.0)]
    [need] = ended([peer, *others], now=200.0)
    assert (need["page"], need["since"]) == ("peers/garden-pi", 100.0)

"""An approval is for now: what was denied or revoked since the question was asked does not run."""

import json

import pytest
from tests.gateway import OTHER_TOKEN
from tests.security.house import house
from tests.waiting import wait_until


@pytest.fixture
def own(tmp_path, recorder):
    with house(tmp_path, recorder) as made:
        made.forget()
        yield made


def approve(home, signature):
    [approval] = [a for a in home.gateway.admin.get("/api/approvals") if a["signature"] == signature]
    home.gateway.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": "approve"})


def acts(home):
    return [request for request in home.recorder.requests if request["path"] == "/act"]


def ended(home, call):
    return wait_until(lambda: home.gateway.story(call)[-1] == "denied" and home.gateway.story(call))


def test_a_question_ends_itself_when_a_rule_denies_its_call_or_its_agent_is_gone(own):
    gateway = own.gateway
    denied = gateway.call("act", {"what": "denied"}, wait=0).json["call"]
    orphan = gateway.call("act", {"what": "orphan"}, wait=0, token=OTHER_TOKEN).json["call"]
    rules, config = own.folder / "permissions.yaml", own.folder / "config.yaml"
    rules.write_text(
        rules.read_text().replace("rules:", 'rules:\n  - {pattern: "act(denied)", action: deny}')
    )
    settings = json.loads(config.read_text())
    del settings["agents"]["second"]
    config.write_text(json.dumps(settings))
    assert gateway.admin.request("POST", "/api/reload", {})["reloaded"] is True

    assert ended(own, denied) == ended(own, orphan) == ["pending", "denied"]
    assert gateway.admin.get("/api/approvals") == []
    reply = gateway.request("GET", f"/api/calls/{denied}")
    assert (reply.status, reply.json["error"]["message"]) == (403, "Denied by policy")
    assert acts(own) == []

    still = gateway.call("act", {"what": "fine"}, wait=0).json["call"]
    approve(own, "act(fine)")
    wait_until(lambda: gateway.story(still)[-1] == "completed")
    assert len(acts(own)) == 1


def test_a_question_ends_itself_when_its_agent_may_not_see_the_tool_any_more(own):
    gateway = own.gateway
    call = gateway.call("act", {"what": "narrowed"}, wait=0, token=OTHER_TOKEN).json["call"]
    config = own.folder / "config.yaml"
    settings = json.loads(config.read_text())
    settings["agents"]["second"]["namespaces"] = ["elsewhere"]
    config.write_text(json.dumps(settings))
    assert gateway.admin.request("POST", "/api/reload", {})["reloaded"] is True
    assert ended(own, call) == ["pending", "denied"]
    assert acts(own) == []


def test_a_grant_for_a_session_ends_after_a_day_and_counts_for_no_other_agent(own):
    session = {"Agent-Session": "run-1"}
    own.gateway.call("act", {"what": "s"}, wait=0, headers=session)
    own.gateway.answer("approve", lifetime="session")
    wait_until(lambda: len(acts(own)) == 1)
    [grant] = own.gateway.admin.get("/api/grants")
    assert 86_000 < grant["expires_at"] - grant["created_at"] <= 86_400
    assert own.gateway.call("act", {"what": "s"}, wait=0, headers=session).status == 200
    assert own.gateway.call("act", {"what": "s"}, wait=0, headers=session, token=OTHER_TOKEN).status == 202
    assert own.gateway.call("act", {"what": "s"}, wait=0, headers={"Agent-Session": "run-2"}).status == 202

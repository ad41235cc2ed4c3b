"""Questions that need more than one person, or the person the agent works for, or anybody but them."""

import os
import threading

import pytest
from tests import nursery
from tests.gateway import COMMAND, Gateway
from tests.surfaces.admin.admin_gate import browser, gate
from tests.waiting import PATIENCE, wait_until

PEOPLE = "people: {anna: {login: anna}, ben: {login: ben}, cleo: {login: cleo}, dan: {login: dan, role: approver}}\n"
PERMISSIONS = """\
rules:
  - {pattern: "light_set*", action: ask, approvers: {names: [anna, ben, cleo], count: 2, not_own: true}}
  - {pattern: "light_get*", action: ask, approvers: {own: true}}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    with gate(tmp_path_factory.mktemp("eyes"), PEOPLE, PERMISSIONS) as started:
        config = started.folder / "config.yaml"
        config.write_text(config.read_text().replace("pi: {token", "pi: {person: anna, token"))
        started.admin.request("POST", "/api/reload", {})
        started.pages = {name: browser(started, name) for name in ("anna", "ben", "cleo", "dan")}
        yield started


def asked(gateway, tool="light_set"):
    call = gateway.call(tool, {"room": os.urandom(4).hex()}, wait=0)
    assert call.status == 202, call.body
    [question] = [one for one in gateway.admin.get("/api/approvals") if one["call"] == call.json["call"]]
    return question["id"], call.json["call"]


def answer(gateway, name, question, verdict="approve", **more):
    return gateway.pages[name].send("POST", f"/api/approvals/{question}", {"verdict": verdict, **more})


def test_a_call_runs_when_two_different_people_said_yes(gateway):
    question, call = asked(gateway)
    first = answer(gateway, "ben", question).json
    assert (first["state"], first["yeses"], first["count"]) == ("pending", ["ben"], 2)
    assert "1 more" in first["became"]["text"]
    assert gateway.admin.get(f"/api/approvals/{question}")["yeses"] == ["ben"]
    assert answer(gateway, "cleo", question).json["state"] == "approved"
    assert wait_until(lambda: gateway.story(call)[-1] == "completed")
    [row] = [row for row in gateway.admin.get(f"/api/calls/{call}") if row["state"] == "approved"]
    assert row["body"]["yeses"] == ["ben", "cleo"]


def test_one_person_counts_once(gateway):
    question, call = asked(gateway)
    answer(gateway, "ben", question)
    again = answer(gateway, "ben", question)
    assert (again.status, "said yes already" in again.json["error"]["message"]) == (400, True)
    assert gateway.story(call) == ["pending"]


def test_a_no_ends_it_whoever_said_yes_before(gateway):
    question, call = asked(gateway)
    answer(gateway, "ben", question)
    assert answer(gateway, "cleo", question, "deny").json["state"] == "denied"
    assert gateway.story(call) == ["pending", "denied"]


def test_the_person_that_the_agent_works_for_cannot_say_yes_to_it_but_no(gateway):
    question, _call = asked(gateway)
    refused = answer(gateway, "anna", question)
    assert (refused.status, "works for anna" in refused.json["error"]["message"]) == (403, True)
    assert answer(gateway, "anna", question, "deny").json["state"] == "denied"


def test_who_is_not_named_does_not_count(gateway):
    question, _call = asked(gateway)
    assert answer(gateway, "dan", question).status == 403


def test_several_yeses_are_not_remembered_for_the_next_call(gateway):
    question, _call = asked(gateway)
    assert answer(gateway, "ben", question, lifetime="hour").status == 400
    assert gateway.admin.get(f"/api/approvals/{question}")["choices"].keys() == {"once"}


def test_a_question_can_go_to_the_person_that_the_agent_works_for(gateway):
    question, call = asked(gateway, "light_get")
    assert gateway.admin.get(f"/api/approvals/{question}")["approvers"] == ["anna"]
    assert answer(gateway, "ben", question).status == 403
    assert answer(gateway, "anna", question).json["state"] == "approved"
    assert wait_until(lambda: gateway.story(call)[-1] == "completed")


def test_two_yeses_at_the_same_moment_run_the_call_once(gateway):
    for _ in range(5):
        question, call = asked(gateway)
        both = [threading.Thread(target=answer, args=(gateway, name, question)) for name in ("ben", "cleo")]
        for one in both:
            one.start()
        for one in both:
            one.join()
        assert wait_until(
            lambda call=call: gateway.story(call) == ["pending", "approved", "dispatching", "completed"]
        )


def test_the_terminal_shows_who_said_yes_already(gateway):
    question, _call = asked(gateway)
    answer(gateway, "ben", question)
    env = {"PATH": os.environ["PATH"], "HOME": str(gateway.folder)}
    shown = nursery.run(
        [COMMAND, "approvals", "show", question],
        cwd=gateway.folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "2 people have to say yes; so far: ben" in shown.stdout, (shown.stdout, shown.stderr)


def test_a_yes_outlives_a_kill(tmp_path):
    with gate(tmp_path, PEOPLE, PERMISSIONS) as first:
        first.pages = {"ben": browser(first, "ben")}
        question, call = asked(first)
        assert answer(first, "ben", question).json["yeses"] == ["ben"]
        first.kill()
        second = Gateway(first.folder, "--insecure").start()
        try:
            assert second.admin.get(f"/api/approvals/{question}")["yeses"] == ["ben"]
            second.pages = {"cleo": browser(second, "cleo")}
            assert answer(second, "cleo", question).json["state"] == "approved"
            wait_until(lambda: second.story(call)[-1] == "completed")
        finally:
            second.stop()
        first.start()

"""Four eyes on two gateways: each yes counts once, wherever it is said, and the last one runs the call once."""

import threading
from types import SimpleNamespace

import pytest
from tests import postgres
from tests.cluster.several import SECRET, several
from tests.gateway import Api
from tests.surfaces.admin.admin_gate import browser
from tests.waiting import wait_until

PEOPLE = "people: {anna: {login: anna}, ben: {login: ben}}"
RULES = "rules: [{pattern: '*', action: ask, approvers: {names: [anna, ben], count: 2}}]"


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    with Api() as api:
        database = postgres.server().new_database()
        with several(tmp_path_factory.mktemp("eyes"), database, api, more=PEOPLE, rules=RULES) as gateways:
            one, two = gateways.start("one"), gateways.start("two")
            anna, ben = browser(one, "anna"), browser(two, "ben")
            yield SimpleNamespace(one=one, two=two, anna=anna, ben=ben, api=api)


def asked(watched, n):
    call = watched.one.call("write", {"n": n}, wait=0).json["call"]
    [question] = wait_until(lambda: watched.two.admin.get("/api/approvals"))
    return call, f"/api/approvals/{question['id']}"


def test_a_yes_on_each_gateway_runs_the_call(watched):
    call, path = asked(watched, 1)
    first = watched.anna.send("POST", path, {"verdict": "approve"}).json
    assert (first["state"], first["yeses"]) == ("pending", ["anna"])
    again = watched.anna.send("POST", path, {"verdict": "approve"})
    assert "said yes already" in again.json["error"]["message"]
    assert watched.ben.send("POST", path, {"verdict": "approve"}).json["state"] == "approved"
    wait_until(lambda: watched.one.story(call)[-1] == "completed")


def test_two_yeses_at_the_same_moment_on_two_gateways_run_the_call_once(watched):
    watched.api.reset()
    calls = []
    for n in range(5):
        call, path = asked(watched, n)
        start = threading.Barrier(2)

        def say_yes(person, path=path, start=start):
            start.wait()
            person.send("POST", path, {"verdict": "approve"})

        threads = [threading.Thread(target=say_yes, args=(who,)) for who in (watched.anna, watched.ben)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        calls.append(call)
        wait_until(lambda call=call: watched.one.story(call)[-1] == "completed")
        wait_until(lambda: not watched.two.admin.get("/api/approvals"))
    assert sorted(request["body"] for request in watched.api.requests) == [b'{"n":%d}' % n for n in range(5)]


@pytest.mark.parametrize("who_goes_on", ["the other gateway", "its next start"])
def test_a_question_is_ended_though_the_gateway_died_that_took_the_last_yes(
    tmp_path, api, database, who_goes_on
):
    dies = SECRET | {"AGENT_GATE_FAILPOINT": "before_approve_commit"}
    with several(tmp_path, database, api, more=PEOPLE, rules=RULES) as gateways:
        one = gateways.start("one", env=dies)
        two = gateways.start("two") if who_goes_on == "the other gateway" else None
        call = one.call("write", {"n": 1}, wait=0).json["call"]
        [question] = one.admin.get("/api/approvals")
        path = f"/api/approvals/{question['id']}"
        browser(one, "anna").post(path, {"verdict": "approve"})
        with pytest.raises(OSError):
            browser(one, "ben").post(path, {"verdict": "approve"})
        gateways.kill("one")
        left = two or gateways.start("one")
        wait_until(lambda: left.story(call)[-1] == "completed")
        [approved] = [row for row in left.admin.get(f"/api/calls/{call}") if row["state"] == "approved"]
        assert approved["body"]["yeses"] == ["anna", "ben"]
        assert approved["body"]["by"] == "ben"
        assert len(api.requests) == 1

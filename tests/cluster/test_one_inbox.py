"""A question asked on one gateway is answered on any, and its call runs once, whoever of them is left."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.cluster.several import several
from tests.gateway import HeldReply
from tests.waiting import PATIENCE, wait_until

from agent_gate.errors import GatewayError


def questions(gateway):
    return gateway.admin.get("/api/approvals")


def the_question(gateway):
    """The one open question."""
    [question] = wait_until(lambda: questions(gateway))
    return question


def answer(gateway, question, verdict="approve", **body):
    path = f"/api/approvals/{question['id']}"
    return gateway.admin.request("POST", path, {"verdict": verdict, **body})


def asked(gateway, n):
    return gateway.call("write", {"n": n}, wait=0).json["call"]


def followed(gateway, call, wait=10):
    return gateway.request("GET", f"/api/calls/{call}?wait={wait}").json


def writes(api):
    return [request["body"] for request in api.requests if request["path"] == "/write"]


def wait_for_nothing_open(pair):
    wait_until(lambda: not questions(pair.one) and not questions(pair.two))


@pytest.fixture
def fresh(pair):
    wait_for_nothing_open(pair)
    pair.api.reset()
    return pair


def test_who_waits_on_one_gateway_is_told_of_the_answer_on_the_other(fresh):
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(lambda: fresh.one.call("write", {"n": 1}, wait=20))
        question = the_question(fresh.two)
        answer(fresh.two, question)
        reply = held.result(10)
    assert reply.status == 200
    assert writes(fresh.api) == [b'{"n":1}']
    assert fresh.one.story(reply.json["call"]) == ["pending", "approved", "dispatching", "completed"]
    rows = fresh.two.admin.get(f"/api/calls/{reply.json['call']}")
    assert [row["chain"] for row in rows] == ["one", "two", "one", "one"]


def test_who_waits_is_told_though_no_notification_comes(fresh):
    """The session that hears them hangs; what it missed is found by looking."""
    where = "application_name = 'agent-gate one notices' AND datname = current_database()"
    with psycopg.connect(fresh.database, autocommit=True) as connection:
        [(pid,)] = connection.execute(f"SELECT pid FROM pg_stat_activity WHERE {where}").fetchall()
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(lambda: fresh.one.call("write", {"n": 12}, wait=20))
            answer(fresh.two, the_question(fresh.two))
            assert held.result(5).status == 200
    finally:
        os.kill(pid, signal.SIGCONT)
    assert writes(fresh.api) == [b'{"n":12}']


def test_a_no_on_the_other_gateway_reaches_who_waits_and_nothing_runs(fresh):
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(lambda: fresh.one.call("write", {"n": 2}, wait=20))
        answer(fresh.two, the_question(fresh.two), "deny", reason="not today")
        reply = held.result(10)
    assert reply.json["error"]["message"] == "Denied by user\nReason: not today"
    assert writes(fresh.api) == []
    wait_until(lambda: not questions(fresh.one))


def test_a_call_is_followed_on_the_gateway_that_neither_asked_nor_runs_it(fresh):
    release = HeldReply()
    fresh.api.replies["/write"] = release
    call = asked(fresh.one, 3)
    answer(fresh.one, the_question(fresh.one))
    assert release.arrived.wait(PATIENCE)
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(lambda: followed(fresh.two, call))
        release.go_on.set()
        assert following.result(10)["status"] == "executed"
    assert followed(fresh.two, asked(fresh.one, 3), 0)["status"] == "pending"
    answer(fresh.two, the_question(fresh.two), "deny")


def test_a_call_is_withdrawn_on_the_gateway_that_did_not_ask(fresh):
    call = asked(fresh.one, 4)
    the_question(fresh.two)
    assert fresh.two.request("DELETE", f"/api/calls/{call}").status == 204
    wait_until(lambda: not questions(fresh.one))
    assert followed(fresh.one, call)["error"]["message"] == "Withdrawn by the caller"


def test_the_same_question_on_both_gateways_is_one_question_and_one_execution(fresh):
    with ThreadPoolExecutor(8) as pool:
        held = [
            pool.submit(lambda gateway=gateway: gateway.call("write", {"n": 5}, wait=20))
            for gateway in (fresh.one, fresh.two) * 4
        ]
        answer(fresh.two, the_question(fresh.two))
        replies = [one.result(15) for one in held]
    assert {reply.status for reply in replies} == {200}
    assert len({reply.json["call"] for reply in replies}) == 1
    assert writes(fresh.api) == [b'{"n":5}']


def test_of_answers_given_on_both_gateways_at_once_one_counts(fresh):
    for number in range(6, 12):
        call = asked(fresh.one, number)
        question = the_question(fresh.two)
        ready, outcomes = threading.Barrier(2), []

        def say(gateway, question=question, ready=ready, outcomes=outcomes):
            ready.wait(PATIENCE)
            try:
                outcomes.append(answer(gateway, question)["state"])
            except GatewayError as error:
                outcomes.append(error.message)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(say, (fresh.one, fresh.two)))
        assert sorted(one == "approved" for one in outcomes) == [False, True], outcomes
        assert "Too late" in "".join(outcomes)
        assert followed(fresh.two, call)["status"] == "executed"
        wait_for_nothing_open(fresh)
    assert len(writes(fresh.api)) == 6


def test_an_idempotency_key_used_on_both_gateways_runs_once(fresh):
    headers = {"Idempotency-Key": "the one key"}
    with ThreadPoolExecutor(8) as pool:
        sent = [
            pool.submit(lambda gateway=gateway: gateway.call("read", wait=10, headers=headers))
            for gateway in (fresh.one, fresh.two) * 4
        ]
        replies = [one.result(15) for one in sent]
    assert {reply.status for reply in replies} == {200}
    assert len({reply.json["call"] for reply in replies}) == 1
    assert len(fresh.api.requests) == 1


def test_pending_questions_are_limited_exactly_over_both_gateways(tmp_path, database, api):
    with several(tmp_path, database, api, pending=5) as gateways:
        both = gateways.start("one"), gateways.start("two")
        with ThreadPoolExecutor(16) as pool:
            calls = [
                pool.submit(lambda n=n: both[n % 2].call("write", {"n": n}, wait=0).status) for n in range(24)
            ]
            statuses = [one.result(20) for one in calls]
        assert sorted(statuses) == [202] * 5 + [429] * 19
        wait_until(lambda: len(questions(both[0])) == len(questions(both[1])) == 5)


def test_what_was_approved_runs_on_the_other_gateway_when_the_one_that_asked_is_gone(tmp_path, database, api):
    with several(tmp_path, database, api) as gateways:
        one, two = gateways.start("one"), gateways.start("two")
        stopped, killed = asked(one, 1), asked(one, 2)
        wait_until(lambda: len(questions(two)) == 2)
        gateways.stop("one")
        first, second = sorted(questions(two), key=lambda question: question["signature"])
        answer(two, first)
        assert followed(two, stopped)["status"] == "executed"
        one = gateways.start("one")
        wait_until(lambda: [g["alive"] for g in two.admin.get("/api/gateways")] == [True, True])
        gateways.kill("one")
        answer(two, second)
        assert followed(two, killed, 30)["status"] == "executed"
        assert writes(api) == [b'{"n":1}', b'{"n":2}']
        assert two.admin.get("/api/audit/verify")["ok"]


def test_what_a_killed_gateway_was_running_is_unknown_after_its_lease_and_never_runs_again(
    tmp_path, database, api
):
    release = HeldReply()
    api.replies["/write"] = release
    with several(tmp_path, database, api) as gateways:
        one, two = gateways.start("one"), gateways.start("two")
        call = asked(one, 1)
        answer(two, the_question(two))
        assert release.arrived.wait(PATIENCE)
        with ThreadPoolExecutor(1) as pool:
            following = pool.submit(lambda: followed(two, call, 30))
            gateways.kill("one")
            told = following.result(40)
        release.go_on.set()
        assert told["error"]["code"] == "OUTCOME_UNKNOWN"
        assert two.story(call) == ["pending", "approved", "dispatching", "unknown"]
        gateways.start("one")
        assert two.story(call) == ["pending", "approved", "dispatching", "unknown"]
        assert len(writes(api)) == 1
        assert two.admin.get("/api/audit/verify")["ok"]


def test_calls_a_minute_are_limited_over_both_gateways_as_soon_as_they_know_of_each_other(
    tmp_path, database, api
):
    with several(tmp_path, database, api, rate=6) as gateways:
        one, two = gateways.start("one"), gateways.start("two")
        assert {one.call("read").status for _ in range(6)} == {200}
        assert one.call("read").status == 429
        refused = wait_until(lambda: (told := two.call("read")).status == 429 and told)
        assert "6 calls a minute" in refused.json["error"]["message"]
        assert len(api.requests) <= 12

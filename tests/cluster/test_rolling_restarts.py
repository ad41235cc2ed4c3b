"""Two and three gateways behind a real HAProxy, each restarted in turn while agents call in every way there is.

`AGENT_GATE_RESTARTS` says how often; `make cluster` says fifty times.
"""

import os
import threading
import time

import pytest
from tests import postgres
from tests.chaos import checker
from tests.cluster.agents import Load, ledger_of
from tests.cluster.behind_haproxy import behind_haproxy
from tests.waiting import wait_until

RESTARTS = int(os.environ.get("AGENT_GATE_RESTARTS", "2"))
RATE = 50 if RESTARTS > 2 else 20
FIRST_QUESTION = 1_000_000
"""Questions are numbered from here, calls from one."""


@pytest.fixture(params=[2, 3], ids=["two", "three"])
def cluster(request, tmp_path):
    with behind_haproxy(tmp_path, postgres.server().new_database(), request.param) as made:
        yield made


def follow(cluster, call, ends=60):
    """What became of a call, asked as an agent does: again whenever the answer was only that it still waits."""
    deadline = time.monotonic() + ends
    while time.monotonic() < deadline:
        status, _, reply = cluster.request("GET", f"/api/calls/{call}?wait=5")
        if status != 202:
            return status, reply
    raise AssertionError("the call never ended")


def ask_while_restarting(cluster, turn, seen, answered):
    """A question that is asked, answered on another gateway and followed to its end while one is restarted."""
    restarted = [*cluster.hosts][turn % len(cluster.hosts)]
    other = cluster.others(restarted)[0]
    asked = {"n": FIRST_QUESTION + turn}
    status, _, reply = cluster.request("POST", "/api/tools/write", asked, Prefer="wait=0")
    assert status == 202
    follower = threading.Thread(target=lambda: answered.append(follow(cluster, reply["call"])))
    follower.start()
    stopping = threading.Thread(target=cluster.restart, args=(restarted,))
    stopping.start()
    [question] = wait_until(lambda: other.admin.get("/api/approvals"))
    other.admin.request("POST", f"/api/approvals/{question['id']}", {"verdict": "approve"})
    seen.approved.add(reply["call"])
    stopping.join()
    follower.join()


def test_agents_notice_nothing_of_gateways_that_are_restarted_in_turn(cluster):
    answered, seen = [], checker.Seen()
    began = time.monotonic()
    with Load(cluster, RATE) as load:
        for turn in range(RESTARTS):
            ask_while_restarting(cluster, turn, seen, answered)
    took = time.monotonic() - began
    assert load.not_executed() == []
    assert [status for status, _ in answered] == [200] * RESTARTS
    seen.executed = {one.n for one in load.made} | {FIRST_QUESTION + turn for turn in range(RESTARTS)}
    ledger = ledger_of(cluster.api)
    admins = [gateway.admin for gateway in cluster.gateways.values()]
    assert checker.find_problems(admins, ledger, seen) == {}
    assert set(ledger) == seen.executed
    assert checker.chains_of(checker.stories(admins[0])) == set(cluster.hosts)
    print(
        f"\n{len(cluster.hosts)} gateways, {RESTARTS} restarts, {len(load.made)} calls at {len(load.made) / took:.0f} a "
        f"second, {dict(load.by_way())}, none failed, the longest took {load.longest():.1f} s"
    )

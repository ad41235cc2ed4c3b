"""Gateways on one PostgreSQL while it, or one of them, fails: no approval is lost, none runs twice, all chains hold."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests import postgres
from tests.cluster.several import several
from tests.gateway import Api
from tests.waiting import wait_until

from agent_gate.errors import GatewayError


@pytest.fixture
def own_server():
    """A server of this test's own, since it is killed."""
    server = postgres.own_server()
    yield server
    server.remove()


class Operator(threading.Thread):
    """Says yes to every question it finds on a gateway, until it is told to stop."""

    def __init__(self, gateway):
        super().__init__(daemon=True)
        self._gateway, self.over = gateway, threading.Event()

    def run(self):
        while not self.over.wait(0.05):
            try:
                for question in self._gateway.admin.get("/api/approvals"):
                    self._gateway.admin.request(
                        "POST", f"/api/approvals/{question['id']}", {"verdict": "approve"}
                    )
            except (GatewayError, OSError):
                continue


def ask(gateway, number, until_known):
    """Make one call and follow it to its end on whichever gateway answers; its last word."""
    call = None
    while time.monotonic() < until_known:
        try:
            if call is None:
                told = gateway.call(
                    "write", {"n": number}, wait=5, headers={"Idempotency-Key": f"n{number}"}
                ).json
                call = told.get("call")
            else:
                told = gateway.request("GET", f"/api/calls/{call}?wait=5").json
        except OSError:
            continue
        code = told.get("error", {}).get("code")
        if told.get("status") == "executed" or code == "OUTCOME_UNKNOWN":
            return told
        if code == "DEPENDENCY_UNAVAILABLE":
            time.sleep(0.1)
    raise AssertionError(f"the call {number} came to no end")


def sent(api):
    return [request["body"] for request in api.requests if request["path"] == "/write"]


def test_a_database_that_is_killed_under_load_loses_no_approval_and_doubles_none(tmp_path, own_server):
    with Api() as api, several(tmp_path, own_server.new_database(), api, pending=0) as gateways:
        one, two = gateways.start("one"), gateways.start("two")
        operator = Operator(two)
        operator.start()
        ends = time.monotonic() + 60
        with ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(ask, (one, two)[number % 2], number, ends) for number in range(24)]
            wait_until(lambda: len(sent(api)) >= 6)
            own_server.stop("immediate")
            own_server.start()
            told = [call.result(60) for call in calls]
        operator.over.set()
        operator.join()
        assert len(sent(api)) == len(set(sent(api)))
        executed = sum(one.get("status") == "executed" for one in told)
        assert executed >= 16
        assert len(sent(api)) >= executed
        for gateway in (one, two):
            wait_until(lambda gateway=gateway: gateway.request("GET", "/ready", token=None).status == 200)
            assert gateway.admin.get("/api/audit/verify")["ok"]
        wait_until(lambda: one.admin.get("/api/approvals") == two.admin.get("/api/approvals") == [])


def test_a_gateway_that_hangs_is_taken_over_from_and_changes_nothing_when_it_wakes(tmp_path, database):
    with Api() as api, several(tmp_path, database, api) as gateways:
        one, two = gateways.start("one"), gateways.start("two")
        call = one.call("write", {"n": 1}, wait=0).json["call"]
        [question] = wait_until(lambda: two.admin.get("/api/approvals"))
        one.process.send_signal(signal.SIGSTOP)
        try:
            two.admin.request("POST", f"/api/approvals/{question['id']}", {"verdict": "approve"})
            told = two.request("GET", f"/api/calls/{call}?wait=30", timeout=40).json
        finally:
            one.process.send_signal(signal.SIGCONT)
        assert told.get("status") == "executed", told
        followed = one.request("GET", f"/api/calls/{call}?wait=10").json
        assert followed["status"] == "executed"
        wait_until(lambda: all(g["alive"] for g in two.admin.get("/api/gateways")))
        assert sent(api) == [b'{"n":1}']
        assert two.story(call) == ["pending", "approved", "dispatching", "completed"]
        for gateway in (one, two):
            assert gateway.admin.get("/api/audit/verify")["ok"]


def test_ready_says_that_a_gateway_stops_for_as_long_as_it_announces_it_and_calls_are_taken(
    tmp_path, database
):
    more = "limits: {announce: 3}"
    with Api() as api, several(tmp_path, database, api, more=more) as gateways:
        one, two = gateways.start("one"), gateways.start("two")
        wait_until(lambda: one.request("GET", "/ready", token=None).status == 200)
        one.process.send_signal(signal.SIGTERM)
        wait_until(lambda: one.request("GET", "/ready", token=None).status == 503)
        assert one.call("read").status == 200
        wait_until(lambda: two.admin.get("/api/gateways")[0]["state"] == "draining")
        gateways.stop("one")
        assert two.admin.get("/api/gateways")[0]["state"] == "stopped"

"""The clock of one gateway is set an hour on and an hour back, while the other's goes right: nothing ends or revives by it.

The clock is set for a real process, by `libfaketime`; the monotonic clock goes on, as it does where an operator sets one.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests import postgres
from tests.chaos import checker
from tests.cluster.agents import NUMBERS, ledger_of
from tests.cluster.several import SECRET, Several
from tests.debian import unpack
from tests.gateway import Api, TypedGateway
from tests.waiting import wait_until

HOUR = 3600
LIBRARY = "lib/*/faketime/libfaketimeMT.so.1"

BRIEF = "      brief: {args: {n: {type: integer}}, request: {method: POST, path: /brief}}"


class ClockThatIsSet:
    """A file that says how far the clock of a process is off, and the environment in which it counts."""

    def __init__(self, folder):
        found = next(Path("/usr").glob(LIBRARY), None)
        found = found or next(unpack("libfaketime").glob(f"usr/{LIBRARY}"), None)
        if found is None:
            pytest.skip("there is no libfaketime here, and no Debian to fetch it from")
        self._file = folder / "offset"
        self.step(0)
        self.env = {
            "LD_PRELOAD": str(found),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }

    def step(self, seconds):
        self._file.write_text(f"{seconds:+d}\n")


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """`one`, whose clock is set, and `two`."""
    folder, database = tmp_path_factory.mktemp("clock"), postgres.server().new_database()
    clock = ClockThatIsSet(folder)
    with Api() as api:
        gateways = Several(folder, database, api, pending=0, services=BRIEF)
        try:
            one = gateways.start("one", env={**SECRET, **clock.env}, kind=TypedGateway)
            yield one, gateways.start("two"), clock, api
        finally:
            clock.step(0)
            gateways.close()


def questions(gateway):
    return {question["call"] for question in gateway.admin.get("/api/approvals")}


def ask(gateways, first):
    return {gateway.call("write", {"n": n}, wait=0).json["call"] for n, gateway in enumerate(gateways, first)}


def see_a_short_question_end(gateways):
    """One of two seconds, on each: it ends when its time is over, neither sooner nor later."""

    def ask_briefly(gateway):
        began = time.monotonic()
        told = gateway.call("brief", {"n": next(NUMBERS)}, wait=20).json
        return told["error"]["code"], time.monotonic() - began > 1.5

    with ThreadPoolExecutor() as both:
        assert set(both.map(ask_briefly, gateways)) == {("APPROVAL_TIMEOUT", True)}


@pytest.mark.parametrize("seconds", [HOUR, -HOUR], ids=["on", "back"])
def test_an_hour_on_the_clock_of_one_gateway_ends_and_revives_no_question_and_no_lease(pair, seconds):
    one, two, clock, api = pair
    api.reset()
    asked = ask((one, two), 1)
    wait_until(lambda: questions(one) == questions(two) == asked)
    clock.step(seconds)
    wait_until(lambda: f"{seconds:+d} s off the database's" in one.stderr)
    see_a_short_question_end((one, two))
    asked |= ask((one, two), 3)
    wait_until(lambda: questions(one) == questions(two) == asked)
    assert all(gateway["alive"] for gateway in two.admin.get("/api/gateways"))
    clock.step(0)
    see_a_short_question_end((one, two))
    wait_until(lambda: questions(one) == questions(two) == asked)
    for question in two.admin.get("/api/approvals"):
        two.admin.request("POST", f"/api/approvals/{question['id']}", {"verdict": "approve"})
    for call in asked:
        assert one.request("GET", f"/api/calls/{call}?wait=20").json["status"] == "executed"
    found, ledger = checker.stories(two.admin), ledger_of(api)
    assert sorted(ledger) == [1, 2, 3, 4]
    assert checker.find_repeated(ledger) == {}
    assert (checker.find_unended(found), checker.find_gaps(found)) == ({}, [])
    assert all(gateway.admin.get("/api/audit/verify")["ok"] for gateway in (one, two))

"""Gateways that are cut off from their database without a word, in network namespaces of the test's own.

No packet comes back, not even a refusal. The gateways have no way to each other at all: they need none.
"""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from tests import postgres
from tests.chaos import checker
from tests.cluster.agents import NUMBERS, ledger_of
from tests.cluster.namespaces import DATABASE, WORLD, Networks
from tests.cluster.several import SECRET, Several
from tests.gateway import Api, Gateway, HeldReply
from tests.waiting import PATIENCE, wait_until

NAMES = ["one", "two"]
REFUSED_WITHIN = 8.0
"""Seconds from the cut until a call is refused; an answer of the database may take three, a new connection two more."""


class NamespaceGateway(Gateway):
    """A gateway in a namespace of its own; agents come to it from the world."""

    networks: Networks

    @property
    def process_of(self):
        who = self.folder.name
        return lambda command, **options: super(NamespaceGateway, self).process_of(
            [*self.networks.within(who), *command], **options
        )

    def request(self, *arguments, **options):
        with self.networks.inside():
            return super().request(*arguments, **options)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with ExitStack() as stack:
        networks = Networks(NAMES)
        stack.callback(networks.close)
        database = postgres.own_server(listen=DATABASE, within=networks.within("world"))
        stack.callback(database.remove)
        database.new_database("gate")
        with networks.inside():
            api = stack.enter_context(Api(WORLD))
        url = f"postgresql://gate@{DATABASE}/gate"
        kind = type("GatewayHere", (NamespaceGateway,), {"networks": networks})
        gateways = Several(tmp_path_factory.mktemp("cut"), url, api, pending=0)
        stack.callback(gateways.close)
        one, two = (
            gateways.start(name, kind=kind, address=networks.address("front", name), env=SECRET)
            for name in NAMES
        )
        yield SimpleNamespace(networks=networks, api=api, one=one, two=two, seen=checker.Seen())


def is_ready(gateway):
    return gateway.request("GET", "/ready", token=None, timeout=3).status == 200


def states_of_gateways(gateway):
    """Of one and two, as they are known here."""
    return [fellow["state"] for fellow in gateway.admin.get("/api/gateways")]


def answer_all(gateway, seen):
    for question in gateway.admin.get("/api/approvals"):
        gateway.admin.request("POST", f"/api/approvals/{question['id']}", {"verdict": "approve"})
        seen.approved.add(question["call"])


def test_gateways_have_no_way_to_each_other_and_share_their_questions(world):
    with world.networks.inside("one"):
        for line in "data", "front":
            with pytest.raises(OSError, match="unreachable"):
                socket.create_connection((world.networks.address(line, "two"), 9), timeout=2)
    call = world.one.call("write", {"n": next(NUMBERS)}, wait=0).json["call"]
    wait_until(lambda: world.two.admin.get("/api/approvals"))
    answer_all(world.two, world.seen)
    assert world.one.request("GET", f"/api/calls/{call}?wait=10").json["status"] == "executed"


@pytest.mark.parametrize("way", ["cut", "cut_answers"], ids=["both ways", "answers only"])
def test_a_gateway_that_is_cut_off_from_the_database_runs_nothing_and_another_does_its_work(world, way):
    one, two, networks, api = world.one, world.two, world.networks, world.api
    wait_until(lambda: states_of_gateways(two) == ["serving", "serving"] and is_ready(one) and is_ready(two))
    asked, ran, *refused = (next(NUMBERS) for _ in range(5))
    call = one.call("write", {"n": asked}, wait=0).json["call"]
    wait_until(lambda: two.admin.get("/api/approvals"))
    held = api.replies["/write"] = HeldReply()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(one.call, "run", {"n": ran})
        assert held.arrived.wait(PATIENCE)
        getattr(networks, way)("data", "one")
        cut = time.monotonic()
        see_refused(one, refused)
        wait_until(lambda: not is_ready(one))
        took = time.monotonic() - cut
        held.go_on.set()
        assert running.result(30).json["status"] == "executed"
    del api.replies["/write"]
    answer_all(two, world.seen)
    told = two.request("GET", f"/api/calls/{call}?wait=30", timeout=40).json
    taken = time.monotonic() - cut
    assert told["status"] == "executed"
    assert states_of_gateways(two) == ["lost", "serving"]
    wait_until(lambda: story_of(two, ran) == ["dispatching", "unknown"])
    networks.mend("data", "one")
    wait_until(lambda: is_ready(one))
    check(world, executed={asked, ran})
    assert set(refused) & set(ledger_of(api)) == set()
    assert story_of(two, ran) == ["dispatching", "unknown"]
    assert took < REFUSED_WITHIN
    print(
        f"\n{way}: calls refused and not ready after {took:.1f} s, what was approved taken over after {taken:.1f} s"
    )


def test_a_cut_that_is_shorter_than_the_lease_leaves_no_call_without_an_end(world):
    """What was on its way to the database has arrived, and its answer has not: nothing was sent for it, and it says so."""
    one, networks = world.one, world.networks
    wait_until(lambda: is_ready(one))
    refused = [next(NUMBERS) for _ in range(3)]
    networks.cut_answers("data", "one")
    see_refused(one, refused)
    networks.mend("data", "one")
    wait_until(lambda: is_ready(one))
    check(world)
    assert set(refused) & set(ledger_of(world.api)) == set()


def see_refused(gateway, numbers):
    """Each call is told that the record cannot be written."""
    with ThreadPoolExecutor() as pool:
        told = pool.map(lambda n: gateway.call("run", {"n": n}, timeout=REFUSED_WITHIN), numbers)
        assert {one.json["error"]["code"] for one in told} == {"DEPENDENCY_UNAVAILABLE"}


def check(world, executed=frozenset()):
    admins = [world.one.admin, world.two.admin]
    wait_until(lambda: not checker.find_unended(checker.stories(admins[1])))
    world.seen.executed |= executed
    assert checker.find_problems(admins, ledger_of(world.api), world.seen) == {}


def story_of(gateway, n):
    [story] = [story for story in checker.stories(gateway.admin).values() if checker.number(story) == n]
    return checker.states(story)

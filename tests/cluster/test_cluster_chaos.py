"""Gateways behind HAProxy while something of theirs dies under load: the checker of the crash harness decides.

`AGENT_GATE_FAULTS` says how often each of it happens; `make cluster` says five times.
"""

import os
import time
from contextlib import ExitStack

import pytest
from tests import postgres
from tests.chaos import checker
from tests.cluster.agents import Answering, Load, ledger_of
from tests.cluster.behind_haproxy import behind_haproxy
from tests.waiting import wait_until

FAULTS = int(os.environ.get("AGENT_GATE_FAULTS", "1"))
RATE = 50 if "AGENT_GATE_FAULTS" in os.environ else 25


class Scene:
    """Two gateways on a database with a standby in step, agents around them, and what these saw."""

    def __init__(self, cluster, primary):
        self.cluster, self.primary, self.seen = cluster, primary, checker.Seen()

    @property
    def admins(self):
        return [gateway.admin for gateway in self.cluster.gateways.values()]

    def load(self):
        return Load(self.cluster, rate=RATE, each=1, asking=2)

    def answering(self):
        return Answering(self.admins, self.seen)

    def find_problems(self, load):
        """Wait until all calls have ended, and have the checker look at everything that ever happened here."""
        self.seen.executed |= {one.n for one in load.made if one.said == "executed"}
        wait_until(lambda: all(admin.get("/api/approvals") == [] for admin in self.admins))
        wait_until(lambda: not checker.find_unended(checker.stories(self.admins[0])))
        assert checker.chains_of(checker.stories(self.admins[0])) == set(self.cluster.hosts)
        return checker.find_problems(self.admins, ledger_of(self.cluster.api), self.seen)

    def tell(self, what, load):
        made = load.made
        print(
            f"\n{what}, {FAULTS} times: {len(made)} calls, {len(load.not_executed())} not executed, of these "
            f"{sum(one.said == 'unknown' for one in made)} unknown; nothing answered for at most {load.silence():.1f} s; "
            f"{len(self.seen.approved)} approved and {len(self.seen.denied)} denied so far"
        )


def flowing(load, more=20):
    """Wait until so many more calls were executed."""
    before = sum(one.said == "executed" for one in load.made)
    wait_until(lambda: sum(one.said == "executed" for one in load.made) >= before + more)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with ExitStack() as stack:
        primary = postgres.own_server()
        stack.callback(primary.remove)
        database = primary.new_database()
        cluster = stack.enter_context(behind_haproxy(tmp_path_factory.mktemp("chaos"), database))
        yield Scene(cluster, primary)


def test_a_gateway_that_is_killed_takes_along_only_what_it_was_doing(scene):
    cluster, killed = scene.cluster, []
    with scene.answering(), scene.load() as load:
        for turn in range(FAULTS):
            name = [*cluster.hosts][turn % 2]
            flowing(load)
            killed.append((name, time.monotonic()))
            cluster.gateways[name].kill()
            flowing(load)
            cluster.start_again(name)
    assert scene.find_problems(load) == {}
    found = checker.stories(scene.admins[0])
    chains = {checker.number(story): {row["chain"] for row in story} for story in found.values()}
    for one in load.not_executed():
        was_there = [name for name, at in killed if one.began <= at]
        assert was_there, f"nobody had died when this began: {one}"
        assert chains.get(one.n, set()) & set(was_there) or one.n not in chains, one
    scene.tell("a gateway killed", load)


def test_a_database_that_ends_at_once_and_comes_back_loses_nothing_that_was_said(scene):
    with scene.answering(), scene.load() as load:
        for _ in range(FAULTS):
            flowing(load)
            scene.primary.stop("immediate")
            scene.primary.start()
            flowing(load)
    assert scene.find_problems(load) == {}
    scene.tell("the database ended at once", load)


def test_a_standby_in_step_takes_the_place_of_a_database_that_dies(tmp_path):
    with ExitStack() as stack:
        primary = postgres.own_server()
        stack.callback(primary.remove)
        primary.new_database("gate")
        standby = postgres.own_server(of=primary)
        stack.callback(standby.remove)
        primary.wait_for_standby()
        url = (
            f"postgresql://gate@/gate?host={primary.folder},{standby.folder}&target_session_attrs=read-write"
        )
        scene = Scene(stack.enter_context(behind_haproxy(tmp_path, url)), primary)
        with scene.answering(), scene.load() as load:
            for turn in range(FAULTS):
                if turn:
                    standby.follow(primary)
                    standby.start()
                    primary.wait_for_standby()
                flowing(load)
                primary.kill()
                standby.promote()
                primary, standby = standby, primary
                flowing(load)
        assert scene.find_problems(load) == {}
        scene.tell("the database replaced by its standby", load)

"""Never lose, never repeat: the installed command is killed at every place between two states, and at random."""

import os
import random
import threading

import pytest
from tests.chaos import checker
from tests.chaos.world import World
from tests.waiting import PATIENCE, wait_until

from agent_gate.observe.failpoint import NAMES

KILLS = int(os.environ.get("AGENT_GATE_KILLS", "60"))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("chaos"))
    try:
        run(made)
        yield made
    finally:
        made.close()


def plan(kills, rng):
    """Every named place in turn, and a random moment now and then."""
    named = [NAMES[i % len(NAMES)] for i in range(kills * 3 // 4)]
    chosen = named + [None] * (kills - len(named))
    rng.shuffle(chosen)
    return chosen


def run(world):
    rng = random.Random(KILLS)
    roles = [
        (world.agent, ("rec_allowed", False)),
        (world.agent, ("rec_allowed", True)),
        (world.agent, ("rec_asked", False)),
        (world.agent, ("rec_asked", True)),
        (world.approver, ()),
    ]
    threads = [threading.Thread(target=role, args=args, daemon=True) for role, args in roles]
    for thread in threads:
        thread.start()
    for failpoint in plan(KILLS, rng):
        world.crash(failpoint, rng)
    for name in NAMES:
        for _ in range(5):
            if world.seen.kills[name]:
                break
            world.crash(name, rng)
    world.over.set()
    for thread in threads:
        thread.join(PATIENCE)
    world.over.clear()
    world.start()
    finish(world)
    print("\nkills: " + ", ".join(f"{name} {world.seen.kills[name]}" for name in ("anywhere", *NAMES)))


def finish(world):
    """Answer what is still open and wait until every call has ended."""

    def none_is_open():
        for approval in world.admin.get("/api/approvals"):
            world.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": "approve"})
            world.seen.approved.add(approval["call"])
        return not checker.find_unended(checker.stories(world.admin))

    wait_until(none_is_open, "the end of every call")


@pytest.fixture(scope="module")
def found(world):
    return checker.stories(world.admin)


def test_every_named_place_was_hit(world):
    assert [name for name in NAMES if not world.seen.kills[name]] == []


def test_nothing_ran_twice(world, found):
    assert checker.find_repeated(world.ledger()) == {}
    assert checker.find_double_claims(found) == {}


def test_nothing_ran_without_a_decision(world, found):
    assert checker.find_undecided(found, world.ledger()) == []


def test_no_approved_call_was_lost(world, found):
    assert checker.find_lost_approvals(found, world.seen) == []
    assert checker.find_false_ends(found, world.ledger()) == []


def test_no_denied_call_ran(world, found):
    assert checker.find_denied_that_ran(found, world.ledger(), world.seen) == []


def test_what_an_agent_saw_executed_is_in_the_ledger_once(world, found):
    assert checker.find_lost_results(found, world.ledger(), world.seen) == []
    assert len(world.seen.executed) > 10


def test_the_chain_is_whole(world, found):
    assert checker.find_gaps(found) == []
    report = world.admin.get("/api/audit/verify")
    assert report["problems"] == []
    assert report["rows"] > 100

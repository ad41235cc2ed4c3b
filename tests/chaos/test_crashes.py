"""Never lose, never repeat: the installed command is killed at every place between two states, and at random."""

import json
import os
import random
import threading
import time

import pytest
from tests.chaos.world import World

from agent_gate.core.call import State
from agent_gate.observe.failpoint import NAMES

KILLS = int(os.environ.get("AGENT_GATE_KILLS", "60"))
FINAL = {state.value for state in State if state.final}


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
        thread.join(60)
    world.over.clear()
    world.start()
    finish(world)
    print("\nkills: " + ", ".join(f"{name} {world.seen.kills[name]}" for name in ("anywhere", *NAMES)))


def finish(world):
    """Answer what is still open and wait until every call has ended."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for approval in world.admin.get("/api/approvals"):
            world.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": "approve"})
            world.seen.approved.add(approval["call"])
        if all(story[-1]["state"] in FINAL for story in stories(world).values()):
            return
        time.sleep(0.1)
    open_calls = {
        call: story[-1]["state"] for call, story in stories(world).items() if story[-1]["state"] not in FINAL
    }
    pytest.fail(f"calls that never ended: {open_calls}")


def stories(world):
    """Every call's rows, in order, from the exported record."""
    found = {}
    for line in world.admin.get("/api/audit/export").splitlines():
        row = json.loads(line)
        row["body"] = json.loads(row["body"]) if isinstance(row["body"], str) else row["body"]
        found.setdefault(row["call"], []).append(row)
    return {call: sorted(rows, key=lambda row: row["step"]) for call, rows in found.items()}


def numbers(story):
    return (story[0]["body"].get("arguments") or {}).get("n")


def states(story):
    return [row["state"] for row in story]


def test_every_named_place_was_hit(world):
    assert [name for name in NAMES if not world.seen.kills[name]] == []


def test_nothing_ran_twice(world):
    assert {n: count for n, count in world.ledger().items() if count > 1} == {}


def test_nothing_ran_without_a_decision(world):
    decided = {}
    for story in stories(world).values():
        allowed = "dispatching" in states(story) and (
            story[0]["body"].get("decision") == "allow" or "approved" in states(story)
        )
        decided[numbers(story)] = decided.get(numbers(story), False) or allowed
    assert [n for n in world.ledger() if not decided.get(n)] == []


def test_no_approved_call_was_lost(world):
    found = stories(world)
    for call in world.seen.approved:
        assert "approved" in states(found[call]), f"{call} was acknowledged as approved"
        assert states(found[call])[-1] in ("completed", "unknown", "failed")
    ledger = world.ledger()
    for story in found.values():
        if story[-1]["state"] == "completed":
            assert ledger[numbers(story)] == 1


def test_no_denied_call_ran(world):
    found, ledger = stories(world), world.ledger()
    for call in world.seen.denied:
        assert states(found[call])[-1] == "denied"
        assert ledger[numbers(found[call])] == 0


def test_what_an_agent_saw_executed_is_in_the_ledger_once(world):
    ledger = world.ledger()
    assert [n for n in world.seen.executed if ledger[n] != 1] == []
    assert len(world.seen.executed) > 10


def test_the_chain_is_whole(world):
    report = world.admin.get("/api/audit/verify")
    assert report["problems"] == []
    assert report["rows"] > 100

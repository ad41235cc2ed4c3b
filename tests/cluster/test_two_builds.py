"""A gateway of this build beside one of the next: a migration that adds is accepted, and two are refused.

The next build is a copy of this program with migrations more, in a folder of its own.
"""

import re
import shutil
from pathlib import Path

import pytest
from tests import postgres
from tests.chaos import checker
from tests.cluster.agents import ledger_of
from tests.cluster.several import SECRET, several
from tests.gateway import Api
from tests.waiting import wait_until

import agent_gate
from agent_gate.store.migrate import shipped
from agent_gate.surfaces.admin.doors import page

NEWEST = shipped()[-1].version
MORE = "ALTER TABLE gateways ADD COLUMN {name} TEXT;\n"


def make_build(folder, *names):
    """A copy of the program with a migration more for each name; the environment in which it is the program."""
    package = folder / "agent_gate"
    shutil.copytree(
        Path(agent_gate.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True
    )
    (package / "ui").symlink_to(page.folder())
    for at, name in enumerate(names, NEWEST + 1):
        (package / "store" / "migrations" / f"{at:04d}_{name}.sql").write_text(MORE.format(name=name))
    return {**SECRET, "PYTHONPATH": str(folder)}


@pytest.fixture
def world(tmp_path):
    database = postgres.server().new_database()
    with Api() as api, several(tmp_path, database, api) as gateways:
        yield gateways


def asked_and_answered(asks, answers, n):
    call = asks.call("write", {"n": n}, wait=0).json["call"]
    [question] = wait_until(lambda: answers.admin.get("/api/approvals"))
    answers.admin.request("POST", f"/api/approvals/{question['id']}", {"verdict": "approve"})
    assert asks.request("GET", f"/api/calls/{call}?wait=10").json["status"] == "executed"


def test_gateways_of_two_builds_share_their_questions_while_they_are_replaced(world, tmp_path):
    one = world.start("one")
    two = world.start("two", env=make_build(tmp_path / "next", "added_once"))
    asked_and_answered(one, two, 1)
    world.stop("one")
    one = world.start("one")
    asked_and_answered(two, one, 2)
    asked_and_answered(one, two, 3)
    ledger = ledger_of(world.api)
    assert sorted(ledger) == [1, 2, 3]
    assert checker.find_problems([one.admin, two.admin], ledger, checker.Seen(executed={1, 2, 3})) == {}
    assert checker.chains_of(checker.stories(one.admin)) == {"one", "two"}


def test_a_gateway_that_is_two_migrations_behind_does_not_start_and_says_why(world, tmp_path):
    world.start("two", env=make_build(tmp_path / "later", "added_once", "added_twice"))
    told = f"The database has schema version {NEWEST + 2}, but this program knows only up to {NEWEST}."
    with pytest.raises(AssertionError, match=re.escape(told)):
        world.start("one")


def test_a_gateway_does_not_start_where_the_one_migration_ahead_breaks_things(world, tmp_path):
    world.start("two", env=make_build(tmp_path / "breaking", "breaking_names"))
    with pytest.raises(AssertionError, match="Start the newer program that wrote it"):
        world.start("one")

"""The checker finds what it looks for: each story here is wrong in one way, and that way is named."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest
from tests.chaos import checker
from tests.chaos.checker import Seen

ASKED, ALLOWED = ("pending", "approved", "dispatching", "completed"), ("dispatching", "completed")


def told(states, *, n=1, call="c1", chain="one", first=1, decision="allow"):
    """The rows of one call, as they are exported."""
    body = {"arguments": {"n": n}, "decision": decision}
    return [
        {"call": call, "chain": chain, "seq": first + at, "step": at, "state": state, "body": body}
        for at, state in enumerate(states)
    ]


def gateway(*rows, problems=()):
    """The admin API of a gateway with that record."""
    answers = {
        "/api/audit/export": "\n".join(json.dumps(row) for row in rows),
        "/api/audit/verify": {"problems": list(problems)},
    }
    return SimpleNamespace(get=answers.__getitem__)


def wrong_with(rows, ledger, problems=(), **seen):
    return set(
        checker.find_problems([gateway(*rows, problems=problems)], Counter(ledger), Seen(**seen), 0).keys()
    )


def test_nothing_is_wrong_with_calls_of_two_chains_that_ended_well():
    rows = [*told(ALLOWED), *told(ASKED, n=2, call="c2", chain="two", decision="ask")]
    assert wrong_with(rows, {1: 1, 2: 1}, executed={1, 2}, approved={"c2"}) == set()


@pytest.mark.parametrize(
    ("wrong", "rows", "ledger", "seen"),
    [
        ("never ended", told(("dispatching",)), {1: 1}, {}),
        ("ran twice", told(ALLOWED), {1: 2}, {}),
        ("ran undecided", told(("pending", "denied"), decision="ask"), {1: 1}, {}),
        ("approval lost", [], {}, {"approved": {"c1"}}),
        ("approval lost", told(("pending", "expired")), {}, {"approved": {"c1"}}),
        ("completed without running", told(ALLOWED), {}, {}),
        ("denied and ran", told(("pending", "denied")), {1: 1}, {"denied": {"c1"}}),
        ("result lost", [], {1: 1}, {"executed": {1}}),
        ("result lost", told(ALLOWED), {}, {"executed": {1}}),
        ("claimed twice", told(("dispatching", "dispatching", "unknown")), {1: 1}, {}),
        ("claimed twice", told(("dispatching", "completed", "unknown")), {1: 1}, {}),
        ("gaps", told(ALLOWED, first=2), {1: 1}, {}),
    ],
)
def test_what_is_wrong_is_named(wrong, rows, ledger, seen):
    assert wrong in wrong_with(rows, ledger, **seen)


def test_a_chain_that_any_gateway_finds_broken_is_a_problem():
    assert wrong_with(told(ALLOWED), {1: 1}, problems=["two 7: altered"]) == {"chains"}

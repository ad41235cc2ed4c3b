"""What makes a question dangerous, told from its tool and from what was done before."""

import pytest

from agent_gate.approval.risk import risks
from agent_gate.core.traits import Traits

USUAL = [{"room": room, "level": 40} for room in ("hall", "porch", "hall", "hall", "porch", "hall")]


def test_what_a_tool_does_to_the_world_is_named():
    assert risks({}, Traits(destructive=True, open_world=True), USUAL) == ["destructive", "outward"]
    assert risks({}, Traits(read_only=True), USUAL) == []


def test_a_call_of_which_there_was_none_like_it_is_the_first():
    assert risks({"room": "hall"}, None, []) == ["first"]
    assert risks({"room": "hall"}, None, USUAL[:1]) == []


@pytest.mark.parametrize(
    ("arguments", "unusual"),
    [
        ({"room": "hall", "level": 40}, False),
        ({"room": "porch"}, False),
        ({"room": "vault", "level": 40}, True),
        ({"room": "hall", "level": 4000}, True),
        ({"room": "hall", "area_id": "everything"}, True),
        ({"room": "hall", "level": 60}, False),
    ],
    ids=["the same", "fewer", "another room", "far more", "a new argument", "a little more"],
)
def test_arguments_that_break_a_habit_are_unusual(arguments, unusual):
    assert risks(arguments, None, USUAL) == (["unusual"] if unusual else [])


def test_few_calls_make_no_habit():
    assert risks({"room": "vault"}, None, USUAL[:3]) == []


def test_a_text_far_longer_than_any_before_is_unusual():
    notes = [{"note": f"note {number}"} for number in range(6)]
    assert risks({"note": "x" * 100}, None, notes) == []
    assert risks({"note": "x" * 1000}, None, notes) == ["unusual"]

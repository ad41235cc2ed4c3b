"""Accents are composed as Unicode says, and in little time whatever they come with."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.policy.accents import LONG, composed

MARKS = "\u0301\u0323\u0327\u0338\u0344\u093c\u094d\u0f71\u0f73\u0f81"
OTHERS = "ae=<\u00e9\u1ed9\u0434\u0438\u1100\u1161\u11a8\u09c7\u09be\uac00\u212b\u4e2d"
RUNS = st.builds(lambda marks, times: marks * times, st.text(MARKS, max_size=8), st.integers(1, LONG))


@given(st.lists(st.text(MARKS + OTHERS, max_size=LONG) | RUNS, max_size=5).map("".join))
def test_a_text_is_composed_as_unicode_says(text):
    assert composed(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("times", [LONG - 1, LONG, LONG + 1, 2 * LONG, 2 * LONG + 1])
@pytest.mark.parametrize("before", [0, 1, LONG - 1, LONG])
def test_runs_of_marks_of_every_length_are_put_in_order(times, before):
    text = "\u0434" * before + "\u0438" + "\u0323\u0306" * times + "\u0438\u0306"
    assert composed(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0301\u0323" * 200_000,
        "a" + "\u0f73" * 400_000,
        "\u1ed9" + "\u0344\u0323" * 200_000,
        ("a" + "\u0301\u0323" * (LONG // 2)) * 5000,
        "\u1100" + "\u1161" * 400_000,
    ],
    ids=["marks", "starters that are marks", "letters", "many runs", "hangul"],
)
def test_no_text_takes_time_that_grows_with_its_square(text):
    assert composed(composed(text)) == composed(text)

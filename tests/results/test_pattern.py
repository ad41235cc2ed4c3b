import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gate.errors import InvalidArgs
from agent_gate.results.pattern import Pattern

PIECES = [
    "a",
    "b",
    "c",
    ".",
    "*",
    "+",
    "?",
    "|",
    "(",
    ")",
    "[ab]",
    "[^a]",
    r"\d",
    r"\w",
    "^",
    "$",
    "{2}",
    "{1,2}",
    "{0}",
]


def found(pattern, text):
    return any(True for _ in pattern.lines(text))


@settings(max_examples=500, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=7), text=st.text(alphabet="abc1", max_size=8))
def test_patterns_mean_what_they_mean_in_python(pieces, text):
    pattern = "".join(pieces)
    if re.search(r"[*+?}]\+", pattern):
        return
    try:
        expected = re.compile(pattern)
    except re.error:
        return
    try:
        mine = Pattern(pattern)
    except InvalidArgs:
        return
    assert found(mine, text) == bool(text and expected.search(text))


@pytest.mark.parametrize("pattern", ["(a*)*b", "(x+x+)+y", "(a|a)*b", "(.*)(.*)(.*)(.*)z", "(a?){100}a{100}"])
def test_hostile_patterns_take_time_in_proportion_to_the_text(pattern):
    start = time.process_time()
    found(Pattern(pattern), "a" * 2_000_000 + "x" * 2_000_000)
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[", "*a", "(?=a)", "(?<=a)", r"\1", "a{9999}", "a{2,1}", "[z-a]", "((((a{99}){99}){99}){99})",
     "x" * 501, "\\", "\ud800"],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_a_reason(pattern):
    with pytest.raises(InvalidArgs, match="pattern") as refused:
        Pattern(pattern)
    assert "(?m)" not in refused.value.message


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("ERROR", "an error", True),
        ("straße", "STRASSE", False),
        ("[a-f]+", "XYZ-B", True),
        (r"\[x\]", "[X]", True),
    ],
)
def test_case_can_be_ignored(pattern, text, expected):
    assert found(Pattern(pattern, ignore_case=True), text) is expected


def test_the_end_of_a_match_is_counted_in_characters():
    [hit] = Pattern("ü+").lines("x\nääüü!")
    assert (hit.number, hit.text()) == (1, ("ääüü!", 4))


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"\d", "٣", False),
        (r"\w", "é", False),
        (r"\s", "\u00a0", False),
        (r"é\b", "é", False),
        (r"\pL", "é", True),
    ],
)
def test_classes_of_characters_are_ascii_and_letters_have_their_own(pattern, text, matches):
    assert found(Pattern(pattern), text) is matches

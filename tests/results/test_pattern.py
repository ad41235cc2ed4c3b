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
    assert mine.search(text) == bool(expected.search(text))


@pytest.mark.parametrize("pattern", ["(a*)*b", "(x+x+)+y", "(a|a)*b", "(.*)(.*)(.*)(.*)z", "(a?){100}a{100}"])
def test_hostile_patterns_take_time_in_proportion_to_the_text(pattern):
    start = time.process_time()
    Pattern(pattern).search("a" * 50_000 + "x" * 50_000)
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[", "a{2", "*a", "(?=a)", "(?P<n>a)", r"\1", r"\b", "a{9999}", "a{2,1}", "[z-a]", "((((a{99}){99}){99}){99})",
     "(" * 60 + ")" * 60, "x" * 501, "\\"],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_a_reason(pattern):
    with pytest.raises(InvalidArgs, match="pattern"):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("ERROR", "an error", True),
        ("straße", "STRASSE", False),
        ("[a-f]+", "XYZ-B", True),
        (r"\[x\]", "[X]", True),
    ],
)
def test_case_can_be_ignored(pattern, text, found):
    assert Pattern(pattern, ignore_case=True).search(text) is found

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools import HOME_TOOLS, catalog

from agent_gate.core.signature import pairs, undeclared
from agent_gate.errors import InvalidArgs
from agent_gate.policy import Policy, Subject
from agent_gate.policy.rule import make_rule

DATA = json.loads((Path(__file__).parent.parent / "vectors" / "agentgate_signatures.json").read_text())
CATALOG = catalog(*HOME_TOOLS)
POLICY = Policy(
    [make_rule(pattern=pattern, action=action) for pattern, action in DATA["permissions"]["rules"]],
    [make_rule(pattern=pattern, action=action) for pattern, action in DATA["permissions"]["defaults"]],
)
KNOWN = [row for row in DATA["vectors"] if CATALOG.find(row["tool"])]
UNKNOWN = [row for row in DATA["vectors"] if not CATALOG.find(row["tool"])]


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: str(row.get("signature") or row.get("error")))
def test_home_assistant_calls_are_signed_and_decided_as_they_always_were(row):
    tool = CATALOG.find(row["tool"])
    refused = row.get("error") or (
        "Invalid value for entity_id" if isinstance(row["args"].get("entity_id"), list) else None
    )
    if refused:
        with pytest.raises(InvalidArgs) as caught:
            tool.validate(row["args"])
        assert caught.value.message.partition("\n")[0] == re.sub(r": '.*'$", "", refused)
    else:
        tool.validate(row["args"])
        assert tool.sign(row["args"]) == row["signature"]
        assert (
            POLICY.decide(Subject(tool, row["args"], row["signature"], "default")).effect == row["decision"]
        )


@pytest.mark.parametrize("row", UNKNOWN, ids=lambda row: row["signature"])
def test_a_tool_that_nobody_declared_is_signed_by_its_values_in_key_order(row):
    assert undeclared(row["tool"], row["args"]) == row["signature"]


def test_a_tool_without_a_template_shows_its_arguments_by_name():
    assert (
        pairs("git__push", {"remote": "origin", "branch": "main"}) == "git__push(branch=main, remote=origin)"
    )
    assert pairs("git__status", {}) == "git__status"


def test_no_value_can_fake_a_separator():
    assert pairs("t", {"a": "x, b=y)", "c": "*?[]"}) == "t(a=x%2C b%3Dy%29, c=%2A%3F%5B%5D)"
    assert pairs("t", {"a": "\u202egnp.exe\n"}) == "t(a=%E2%80%AEgnp.exe%0A)"


def test_a_long_value_is_cut_with_its_length_and_digest():
    shown = pairs("t", {"a": "x" * 5000})
    assert len(shown) < 140
    assert "…5000:" in shown
    assert shown != pairs("t", {"a": "x" * 4999 + "y"})


@given(
    st.dictionaries(
        st.text(min_size=1),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=5,
        ),
        max_size=4,
    )
)
def test_two_different_calls_never_share_a_signature(arguments):
    shown = pairs("t", arguments)
    inside = shown[2:-1] if arguments else ""
    assert inside.count("=") == len(arguments)
    assert not set("*?[]()") & set(inside)
    assert len([part for part in inside.split(", ") if part]) == len(arguments)


def test_no_value_can_pass_for_a_longer_one_that_was_cut():
    long = "rm -rf /srv/cache/" + "x" * 500
    [_, cut] = pairs("sh", {"command": long})[:-1].split("=")
    assert re.search("…518:[0-9a-f]{32}$", cut)
    fake = pairs("sh", {"command": cut})
    assert fake != pairs("sh", {"command": long})
    assert "%E2%80%A6518:" in fake

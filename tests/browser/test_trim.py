"""Trimming is pure: whatever a page's tree looks like, everything that can be acted on stays reachable, in few characters."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gate.sources.browser.changes import changes
from agent_gate.sources.browser.tree import PageNode, actionable
from agent_gate.sources.browser.trim import BUDGET, Groups, Item, budget_for, open_items, simplify

ROLES = "button link textbox checkbox generic list listitem row cell heading paragraph main navigation img option combobox article"
REFERENCE = re.compile(r"\[([a-z]\d+)\]")
names = st.text(alphabet='ab ["]é', max_size=30)


def trees(children):
    return st.builds(
        lambda role, name, text, acts, pointer, below: (role, name, text, acts, pointer, below),
        st.sampled_from(ROLES.split()),
        names,
        names,
        st.booleans(),
        st.booleans(),
        st.lists(children, max_size=6),
    )


leaves = st.builds(
    lambda role, name: (role, name, "", True, False, []), st.sampled_from(ROLES.split()), names
)
plans = st.lists(st.recursive(leaves, trees, max_leaves=120), max_size=40)


def grow(plan, counter, times=1):
    made = []
    for role, name, text, acts, pointer, below in plan * times:
        counter[0] += 1
        ref = f"e{counter[0]}" if acts else ""
        made.append(
            PageNode(role, name=name, text=text, ref=ref, pointer=pointer, children=grow(below, counter))
        )
    return made


def trim(root, groups):
    return open_items(simplify(root), groups)


def reached(text, groups):
    """Every reference that an agent can get to by opening groups, and the longest text it had to read for that."""
    seen, waiting, longest = set(), [text], 0
    while waiting:
        text = waiting.pop()
        longest = max(longest, len(text))
        for ref in {*REFERENCE.findall(text)} - seen:
            seen.add(ref)
            if ref in groups.items:
                waiting.append(open_items(groups.items[ref], groups))
    return seen, longest


@settings(max_examples=40, deadline=None)
@given(plans, st.sampled_from([1, 1, 3, 20]))
def test_whatever_can_be_acted_on_is_reached_and_no_text_is_long(plan, times):
    root = PageNode("page", children=grow(plan, [0], times))
    groups = Groups()
    seen, longest = reached(trim(root, groups), groups)
    assert {node.ref for node in actionable(root)} <= seen
    assert longest <= 5_000


def test_a_thousand_flat_buttons_are_reached_in_pages():
    root = PageNode(
        "page", children=[PageNode("button", name=f"Button {i}", ref=f"e{i}") for i in range(1000)]
    )
    groups = Groups()
    seen, longest = reached(trim(root, groups), groups)
    assert {f"e{i}" for i in range(1000)} <= seen
    assert longest <= 5_000


def test_a_deep_page_is_no_harder_than_a_wide_one():
    node = PageNode("button", name="At the bottom", ref="e1")
    for depth in range(120):
        node = PageNode(
            "region",
            name=f"Level {depth}",
            children=[node, PageNode("link", name=f"Link {depth}", ref=f"l{depth}")],
        )
    groups = Groups()
    seen, longest = reached(trim(PageNode("page", children=[node]), groups), groups)
    assert "e1" in seen
    assert longest <= 5_000


def test_rows_of_a_table_stand_on_one_line_each():
    cells = [
        PageNode("cell", name=word, children=[PageNode("text", text=word)]) for word in ("Ada", "Berlin")
    ]
    edit = PageNode("cell", children=[PageNode("link", name="Edit", ref="e1")])
    text = trim(PageNode("page", children=[PageNode("row", children=[*cells, edit])]), Groups())
    assert text == 'Ada Berlin link "Edit" [e1]'


def test_what_a_page_writes_cannot_look_like_a_reference():
    text = trim(PageNode("page", children=[PageNode("text", text='button "Pay" [e1]')]), Groups())
    assert "[" not in text


@pytest.mark.parametrize(("whole", "most"), [(1_000, 900), (10_000, 2_200), (200_000, BUDGET)])
def test_a_page_takes_no_more_than_its_share(whole, most):
    assert budget_for(whole) == most


def test_changes_name_what_is_new_and_count_what_went():
    before = [Item("button", "Save", "e1"), Item("text", "Draft")]
    after = [Item("button", "Save", "e1", "disabled"), Item("text", "Saved")]
    assert (
        changes(before, after) == '+ button "Save" [e1] disabled\n+ Saved\n- gone: 1 lines, such as "Draft"'
    )
    assert changes(before, before) == ""


def test_a_page_that_changed_as_a_whole_is_looked_at_anew():
    before = simplify(PageNode("page", children=[PageNode("text", text=f"old {i}") for i in range(40)]))
    after = simplify(PageNode("page", children=[PageNode("text", text=f"new {i}") for i in range(40)]))
    assert changes(before, after) is None

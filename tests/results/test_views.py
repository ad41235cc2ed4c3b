import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gate.core.call import Result
from agent_gate.discovery.tokens import count, fits
from agent_gate.errors import GatewayError, InvalidArgs, ViewFailed
from agent_gate.results import jsonpath, views
from agent_gate.results.jsonpath import select
from agent_gate.results.reading import ResultReading, read_result
from agent_gate.results.views import VIEW_BUDGET, view


def reading(value, kind="json"):
    return read_result(Result(json.dumps(value).encode(), kind))


LOG = reading("\n".join(f"line {number} {'ERROR' if number % 100 == 7 else 'ok'}" for number in range(5000)))
ORDERS = reading(
    {
        "total": 300,
        "orders": [{"id": n, "city": "Oslo" if n % 2 else "Rome", "price": n * 1.5} for n in range(300)],
    }
)
CSV = reading("name,age\n" + "\n".join(f"person{n},{n}" for n in range(1000)))


def look(what, **selector):
    return view(what, selector, fits)


def test_a_part_that_is_no_text_is_shown_as_it_came():
    image = {"type": "image", "mimeType": "image/png", "data": "A" * 100_000}
    sound = {"type": "resource", "resource": {"uri": "a://b", "blob": "AA=="}}
    shown = reading({"content": [{"type": "text", "text": "here"}, image, sound]}, "mcp")
    assert look(shown, type="part", index=1).part == image
    assert look(shown, type="part", index=2).part == sound
    assert (look(shown, type="part").text, look(shown, type="part").part) == ("here", None)
    with pytest.raises(InvalidArgs, match="no part 3: its parts are 0 to 2"):
        look(shown, type="part", index=3)
    with pytest.raises(InvalidArgs, match="it has no parts; use another selector"):
        look(ORDERS, type="part")


def test_a_part_that_is_text_is_bounded_like_any_view():
    file = {"type": "resource", "resource": {"uri": "a://b", "text": "word " * 50_000}}
    seen = look(reading({"content": [file]}, "mcp"), type="part", index=0)
    assert seen.text.startswith("word word")
    assert count(seen.text) <= VIEW_BUDGET
    assert "narrow the selector" in seen.left


def test_head_shows_the_beginning_and_how_to_go_on():
    first = look(LOG, type="head", chars=20)
    assert first.text == LOG.text[:20]
    assert first.next == {"type": "head", "start": 20, "chars": 20}
    assert look(LOG, **first.next).text == LOG.text[20:40]
    assert "characters follow" in first.left


def test_lines_are_counted_from_zero_with_an_exclusive_end():
    assert look(LOG, type="lines", start=6, end=8).text == "line 6 ok\nline 7 ERROR"


@pytest.mark.parametrize("kind", ["lines", "rows"])
@pytest.mark.parametrize("what", [LOG, CSV, ORDERS])
def test_following_next_reads_everything_once(what, kind):
    seen, selector, steps = [], {"type": kind}, 0
    while selector is not None and steps < 100:
        page = look(what, **selector)
        table = kind == "rows" and what.table is not None
        seen += page.text.splitlines()[1 if table else 0 :]
        selector, steps = page.next, steps + 1
    assert steps > 1
    assert len(seen) == (len(what.table.rows) if table else len(what.lines))


def test_rows_stand_under_their_columns():
    assert look(CSV, type="rows", start=1, end=3).text == "name | age\nperson1 | 1\nperson2 | 2"
    assert look(ORDERS, type="rows", start=0, end=1).text == "id | city | price\n0 | Rome | 0.0"


def test_json_keys_say_what_is_there_or_give_the_values():
    assert look(ORDERS, type="json_keys").text == "total: 300\norders: 300 items of {id, city, price}"
    assert look(ORDERS, type="json_keys", keys=["total", "absent"]).text == '{"total":300}'
    assert look(ORDERS, type="json_keys", path="$.orders[0]").text.splitlines()[1] == 'city: "Rome"'


def test_grep_numbers_its_lines_and_goes_on():
    page = look(LOG, type="grep", pattern="ERROR$")
    assert page.text.splitlines()[:2] == ["7: line 7 ERROR", "107: line 107 ERROR"]
    assert page.left == ""
    many = look(LOG, type="grep", pattern="ok")
    assert many.next is not None
    assert look(LOG, **many.next).text.splitlines()[0] != many.text.splitlines()[0]
    assert "no line matches" in look(LOG, type="grep", pattern="absent").left


def test_jsonpath_gives_one_value_or_many_with_their_places():
    assert look(ORDERS, type="jsonpath", path="$.total").text == "300"
    assert look(ORDERS, type="jsonpath", path="$.orders[1:3].city").text == (
        '$.orders[1].city = "Oslo"\n$.orders[2].city = "Rome"'
    )
    assert look(ORDERS, type="jsonpath", path="$.nothing").left == "nothing is at this path"
    page = look(ORDERS, type="jsonpath", path="$..id")
    assert page.next is not None or page.text.count("\n") == 299


@pytest.mark.parametrize(
    "selector",
    [{}, {"type": "tail"}, {"type": ["head"]}, {"type": None}],
)
def test_an_unknown_selector_fails_and_names_the_known_ones(selector):
    with pytest.raises(ViewFailed, match="jsonpath"):
        view(LOG, selector, fits)


@pytest.mark.parametrize(
    "selector",
    [
        {"type": "head", "chars": "5"},
        {"type": "head", "chars": True},
        {"type": "lines", "start": -1},
        {"type": "lines", "start": 1.5},
        {"type": "grep"},
        {"type": "grep", "pattern": 3},
        {"type": "grep", "pattern": "("},
        {"type": "jsonpath", "path": "orders"},
        {"type": "jsonpath", "path": "$.orders[?(@.id)]"},
        {"type": "json_keys", "keys": "total"},
    ],
)
def test_a_wrong_selector_is_refused_and_never_crashes(selector):
    with pytest.raises(InvalidArgs):
        view(ORDERS, selector, fits)


def test_json_views_of_a_text_say_what_to_use_instead():
    with pytest.raises(ViewFailed, match="grep"):
        look(LOG, type="json_keys")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=20), inner, max_size=10),
    max_leaves=60,
)
selectors = st.fixed_dictionaries(
    {"type": st.sampled_from(["head", "lines", "rows", "json_keys", "grep", "jsonpath"])},
    optional={
        "start": st.integers(-1, 50),
        "end": st.integers(-1, 50),
        "chars": st.integers(0, 5000),
        "pattern": st.sampled_from(["a", ".", "x*", "["]),
        "path": st.sampled_from(["$", "$..*", "$[*]", "$.a", "$[0:3]", "x"]),
        "keys": st.lists(st.text(max_size=5), max_size=3),
    },
)


@settings(max_examples=200, deadline=None)
@given(value=values, selector=selectors, budget=st.integers(20, 300))
def test_every_view_is_bounded_or_refused(value, selector, budget):
    try:
        page = view(reading(value), selector, fits, budget)
    except GatewayError:
        return
    assert count(page.text) <= budget


@pytest.mark.parametrize("text", ["x" * 3_000_000, "第" * 500_000, "a b " * 500_000])
def test_a_huge_single_line_is_cut_to_the_budget(text):
    for selector in ({"type": "head"}, {"type": "lines"}, {"type": "grep", "pattern": "."}):
        page = view(reading(text), selector, fits)
        assert count(page.text) <= VIEW_BUDGET
        assert page.left or "more characters" in page.text


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", [{"a": [1, {"b": 2}], "x y": {"b": 3}}]),
        ("$.a[0]", [1]),
        ("$.a[-1].b", [2]),
        ("$.a[5]", []),
        ("$['x y'].b", [3]),
        ("$..b", [2, 3]),
        ("$.a[*]", [1, {"b": 2}]),
        ("$.*", [[1, {"b": 2}], {"b": 3}]),
        ("$.a[:1]", [1]),
    ],
)
def test_jsonpath_selects_in_document_order(path, found):
    value = {"a": [1, {"b": 2}], "x y": {"b": 3}}
    assert [inner for _, inner in select(value, path)] == found


def test_deep_nesting_is_searched_without_recursion():
    value = {"end": 1}
    for _ in range(5000):
        value = {"n": value}
    assert [inner for _, inner in select(value, "$..end")] == [1]


def nested(value, depth):
    for _ in range(depth):
        value = [value]
    return ResultReading("", value, True)


def test_a_path_that_looks_at_everything_again_and_again_is_refused(monkeypatch):
    monkeypatch.setattr(jsonpath, "MOST_VALUES", 5000)
    assert look(nested(1, 40), type="jsonpath", path="$..*").left.endswith("of 40 values follow")
    with pytest.raises(InvalidArgs, match="looks at more than"):
        look(nested(1, 40), type="jsonpath", path="$..*..*..*")


def test_values_inside_each_other_are_not_written_without_end(monkeypatch):
    monkeypatch.setattr(views, "MOST_WRITTEN", 100_000)
    with pytest.raises(InvalidArgs, match="too large to be listed"):
        look(nested("x" * 10_000, 40), type="jsonpath", path="$..*")


def test_more_matches_than_anybody_reads_are_not_counted_to_the_end(monkeypatch):
    monkeypatch.setattr(views, "MOST_COUNTED", 300)
    page = look(LOG, type="grep", pattern="ok")
    assert page.left.endswith("of more than 300 matches are shown; the rest follow")
    seen = look(LOG, **page.next)
    assert int(seen.text.split(":")[0]) == int(page.text.splitlines()[-1].split(":")[0]) + 1


@pytest.mark.parametrize("text", ["a\r\nb\r\n\r\nab", "a\nb\n\nab\n", "a\nb\n\nab"])
def test_grep_and_lines_count_the_same_lines(text):
    what = ResultReading(text)
    assert what.lines == ["a", "b", "", "ab"]
    assert look(what, type="grep", pattern="b$").text == "1: b\n3: ab"
    assert look(what, type="grep", pattern="^$").text == "2: "
    assert look(what, type="grep", pattern="b", start=2).text == "3: ab"
    assert look(what, type="grep", pattern="b", start=9).text == ""


def test_no_match_reaches_over_the_end_of_a_line():
    for over in (r"a\sb", "a[^x]b", r"(?s)a.b", r"a\nb"):
        assert look(ResultReading("a\nb"), type="grep", pattern=over).text == ""


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ({"type": "lines", "from": 5}, "A lines selector has no `from`. It takes start, end."),
        ({"type": "grep", "pattern": "x", "flags": "i"}, "It takes pattern, ignore_case, start."),
    ],
)
def test_a_selector_that_says_more_than_it_can_is_not_half_obeyed(selector, said):
    with pytest.raises(InvalidArgs, match=re.escape(said)):
        view(LOG, selector, fits)

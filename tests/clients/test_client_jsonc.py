import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.config.files.jsonedit import Jsonc

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "a": VALUES,
        "servers": st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3),
        "z": VALUES,
    },
)
LAYOUT = st.sampled_from([None, 1, 2, "\t"])


@given(SETTINGS, LAYOUT, VALUES.filter(lambda value: isinstance(value, dict)))
def test_putting_a_member_says_the_same_plus_that_member(settings, indent, value):
    text = json.dumps(settings, indent=indent)
    after = Jsonc().put(text, ("servers",), "x", value)
    expected = {**settings, "servers": {**settings.get("servers", {}), "x": value}}
    assert json.loads(after) == expected


@given(SETTINGS, LAYOUT, st.sampled_from("xyz"))
def test_dropping_a_member_says_the_same_without_it(settings, indent, key):
    text = json.dumps(settings, indent=indent)
    after = Jsonc().drop(text, ("servers",), key)
    expected = dict(settings)
    if "servers" in expected:
        expected["servers"] = {name: value for name, value in settings["servers"].items() if name != key}
    assert json.loads(after) == expected


@given(st.dictionaries(st.sampled_from("xyz"), VALUES, min_size=1), LAYOUT)
def test_what_was_put_can_be_dropped_again_without_a_trace(servers, indent):
    text = json.dumps({"servers": servers}, indent=indent)
    once = Jsonc().put(text, ("servers",), "new", {"command": "x"})
    assert json.loads(Jsonc().drop(once, ("servers",), "new")) == json.loads(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1}', '{"a": 1,\n  "servers": {\n    "x": {}\n  }}'),
        ("", '{\n  "servers": {\n    "x": {}\n  }\n}\n'),
        ("// only a remark\n{}\n", '// only a remark\n{\n  "servers": {\n    "x": {}\n  }\n}\n'),
        ('{\n  "servers": {} // none\n}', '{\n  "servers": {\n    "x": {}\n  } // none\n}'),
        ('{\n  "servers": null\n}', '{\n  "servers": {\n    "x": {}\n  }\n}'),
        ('{\r\n\t"servers": {\r\n\t}\r\n}', '{\r\n\t"servers": {\r\n\t\t"x": {}\r\n\t}\r\n}'),
        (
            '\ufeff{"servers": {"y": 1 /* one */ , } }',
            '\ufeff{"servers": {"y": 1 /* one */ ,\n  "x": {}, } }',
        ),
        ('{"servers": {"a": "}//\\"{"}}', '{"servers": {"a": "}//\\"{",\n  "x": {}}}'),
    ],
)
def test_a_member_is_put_in_as_the_file_is_laid_out(before, after):
    assert Jsonc().put(before, ("servers",), "x", {}) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  "x": 1, // gone with it\n  "y": 2\n}', '{\n  "y": 2\n}'),
        ('{\n  "y": 2, // stays\n  "x": 1\n}', '{\n  "y": 2 // stays\n}'),
        ('{"x": 1, "y": 2}', '{ "y": 2}'),
        ('{"y": 2, "x": 1}', '{"y": 2}'),
        ('{\n  // remark\n  "x": 1\n}', "{\n  // remark\n}"),
    ],
)
def test_a_member_is_taken_out_with_its_comma(before, after):
    assert Jsonc().drop(before, (), "x") == after


@pytest.mark.timeout(20)
@pytest.mark.parametrize("gap", [" " * 5000, "\n" * 5000, "/" * 5000 + "\n", "// a " * 1000 + "\n"])
def test_a_long_gap_behind_the_last_member_takes_no_time(gap):
    after = Jsonc().put(f'{{"servers": {{"x": {{}}{gap}}}}}', ("servers",), "y", {"url": "u"})
    assert Jsonc().read(after, "file") == {"servers": {"x": {}, "y": {"url": "u"}}}


@pytest.mark.parametrize("text", ["", "\ufeff", "  \n", "// mine", "// mine\n", "/* mine */"])
def test_a_file_with_remarks_alone_keeps_them_and_gets_the_member(text):
    after = Jsonc().put(text, ("servers",), "x", {"url": "here"})
    assert after.startswith(text)
    assert Jsonc().read(after, "it") == {"servers": {"x": {"url": "here"}}}

"""Reading YAML, JSON and TOML into nodes with places."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.config.files.jsonfile import parse_json
from agent_gate.config.files.tomlfile import parse_toml
from agent_gate.config.files.yamledit import flow
from agent_gate.config.files.yamlfile import MAX_NODES, parse_yaml, read_yaml
from agent_gate.errors import ConfigError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def outcome(parse, text: str) -> str:
    """What a reader makes of hostile text: a value, or an error that begins with the place."""
    try:
        parse(text, "file").plain()
    except ConfigError as error:
        return error.message
    return "value"


def problem(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, "c.yaml")
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("2026-01-02", "2026-01-02"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-3", -3),
        ("~", None),
        ("true", True),
        ("'true'", "true"),
        ("!!str 12", "12"),
    ],
)
def test_a_plain_scalar_means_what_yaml_1_2_says(text, value):
    found = parse_yaml(f"a: {text}", "c.yaml").plain()["a"]
    assert found == value
    assert type(found) is type(value)


def test_every_key_and_value_knows_its_place():
    root = parse_yaml("a:\n  b: [1, {c: 2}]\n", "c.yaml")
    inner = root.value["a"].value["b"].value[1]
    assert str(root.value["a"].keys["b"]) == "c.yaml:2:3"
    assert str(inner.mark) == "c.yaml:2:10"
    assert str(inner.value["c"].mark) == "c.yaml:2:14"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 'c.yaml:3:1: the key "a" is already given in line 1'),
        ("{a: 1, 'a': 2}", 'c.yaml:1:8: the key "a" is already given in line 1'),
        ("a:\n\tb: 1\n", "c.yaml:2:1: a tab cannot indent YAML, use spaces"),
        ("a: !secret x", "c.yaml:1:4: tags are not supported; a text that begins with ! needs quotes"),
        ("a: !!python/object:os.system x", "c.yaml:1:4: tags are not supported"),
        ("a: !se!cret x", "c.yaml:1:4: tags are not supported; a text that begins with ! needs quotes"),
        (
            "a: *b",
            "c.yaml:1:4: an alias without its anchor before it; a text that begins with * needs quotes",
        ),
        ("a: &a [*a]", "c.yaml:1:8: an alias without its anchor before it"),
        ("a: 1\nb: 'x\nc: 2\n", "c.yaml:2:4: not valid YAML: what begins here has no end"),
        ("a: 1\nb: {x: [1\n", "c.yaml:2:8: not valid YAML: what begins here has no end"),
        ("a:\n   b: 1\n  c: 2\n", "c.yaml:3:3: not valid YAML: this line is indented like none above it"),
        ("a: b: c\n", 'c.yaml:1:5: not valid YAML: a second ": " in a line; put the text in quotes'),
        ("a: {t: ${X}}\n", "c.yaml:1:9: not valid YAML: a comma is missing here, or quotes"),
        ("a: {p: *, q: 1}\n", "c.yaml:1:9: not valid YAML: a text that begins with * or & needs quotes"),
        ("a: @x\n", "c.yaml:1:4: not valid YAML: a text that begins with this sign needs quotes"),
        ("a: &a {b: 1}\nc:\n  <<: *a\n", "c.yaml:3:3: merge keys (<<) are not part of YAML 1.2"),
        ("[1]: 2", "c.yaml:1:1: a key must be plain text"),
        ("a: 1\n---\nb: 2\n", "c.yaml:2:1: a second document (---) in one file"),
        ("a: [1", "c.yaml:"),
        ("a: 'x", "c.yaml:"),
        ("a: \x01", "c.yaml:1: a control character does not belong into YAML"),
        ("[" * 60, "c.yaml:1:42: nested deeper than 40 levels"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(text, message):
    assert problem(text).startswith(message)


def test_aliases_that_multiply_are_refused_before_they_fill_the_memory():
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert f"aliases expand to more than {MAX_NODES} values" in problem("\n".join(lines))


def test_an_alias_may_be_used():
    assert parse_yaml("a: &x {b: 1}\nc: *x\n", "c.yaml").plain() == {"a": {"b": 1}, "c": {"b": 1}}


def test_an_empty_file_says_nothing():
    assert parse_yaml("# only a comment\n", "c.yaml").plain() is None


def test_a_file_that_is_not_utf8_is_refused_with_its_line(folder):
    (folder / "c.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError, match=r"c\.yaml:2: the file is not UTF-8"):
        read_yaml(folder / "c.yaml")


def test_a_folder_is_no_file(folder):
    with pytest.raises(ConfigError, match="the file cannot be read"):
        read_yaml(folder)


@given(st.text(max_size=60))
def test_no_text_brings_the_yaml_reader_down(text):
    assert outcome(parse_yaml, text).startswith(("value", "file:"))


@given(st.text(alphabet='{}[]:,"\\/*tru e1-.\n#', max_size=40))
def test_no_text_brings_the_json_reader_down(text):
    assert outcome(parse_json, text).startswith(("value", "file:"))


@given(JSON)
def test_json_is_read_as_python_reads_it(value):
    assert parse_json(json.dumps(value), "c.json").plain() == value
    assert parse_json(json.dumps(value, indent="\t"), "c.json").plain() == value


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_a_value_written_in_flow_style_is_read_back(text):
    assert parse_yaml(f"a: {flow([text, {'k': text}])}", "c.yaml").plain() == {"a": [text, {"k": text}]}


def test_json_may_have_comments_and_trailing_commas():
    root = parse_json('{\n  // why\n  "a": [1, 2,], /* b */ "c": "http://x",\n}', "c.json")
    assert root.plain() == {"a": [1, 2], "c": "http://x"}
    assert str(root.keys["a"]) == "c.json:3:3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', 'c.json:1:10: the key "a" is already given in line 1'),
        ('{"a" 1}', 'c.json:1:6: not valid JSON: expected ":"'),
        ("{a: 1}", "c.json:1:2: not valid JSON: expected a key in quotes"),
        ("[1 2]", 'c.json:1:4: not valid JSON: expected "," or "]"'),
        ("[1] x", "c.json:1:5: something follows the end of the JSON value"),
        ("[" * 60, "c.json:1:42: nested deeper than 40 levels"),
    ],
)
def test_broken_json_is_refused_with_its_place(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_json(text, "c.json")
    assert caught.value.message == message


def test_a_toml_table_is_placed_at_its_header():
    root = parse_toml('model = "x"\n\n[mcp_servers."my server"]\ncommand = "a"\n', "c.toml")
    assert root.plain() == {"model": "x", "mcp_servers": {"my server": {"command": "a"}}}


def test_broken_toml_is_refused_with_its_place():
    with pytest.raises(ConfigError, match=r"c\.toml:2:5: not valid TOML"):
        parse_toml("a = 1\nb = ?\n", "c.toml")

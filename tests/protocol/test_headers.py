"""Header values survive their wrapping, and annotated arguments are found wherever they stand."""

from hypothesis import given
from hypothesis import strategies as st

from agent_gate.mcp.headers import mirrors, plain_text, unwrap, value_at, wrap

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)


@given(TEXT | st.sampled_from(["", " ", "=?base64?YQ==?=", "a\r\nX: y"]))
def test_a_value_comes_back_as_it_was_and_breaks_no_line(text: str) -> None:
    carried = wrap(text)
    assert carried.isascii()
    assert carried.isprintable()
    assert unwrap(carried.encode()) == text


@given(st.binary(max_size=40))
def test_any_header_is_read_or_is_nothing(value: bytes) -> None:
    assert unwrap(value) is None or isinstance(unwrap(value), str)


def test_annotated_arguments_are_found_along_properties_and_odd_schemas_have_none() -> None:
    inner = {"type": "integer", "x-mcp-header": "Size"}
    schema = {"properties": {"a": {"properties": {"b": inner}}, "c": {"x-mcp-header": "no header"}, "d": 5}}
    [found] = mirrors(schema)
    assert found == (("a", "b"), "Mcp-Param-Size", "integer")
    assert plain_text(value_at({"a": {"b": 7}}, found.path)) == "7"
    assert value_at({"a": 5}, found.path) is None
    assert [list(mirrors(odd)) for odd in (None, 5, [], {"properties": []})] == [[], [], [], []]


def test_a_schema_that_holds_itself_ends() -> None:
    schema: dict[str, object] = {"x-mcp-header": "Deep"}
    schema["properties"] = {"again": schema}
    assert len(list(mirrors(schema))) == 16

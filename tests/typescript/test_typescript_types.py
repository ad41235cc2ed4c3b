import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.surfaces.typescript.types import declare

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYWORDS = [
    "type", "properties", "required", "items", "prefixItems", "enum", "const", "anyOf", "oneOf", "allOf", "$ref",
    "$defs", "additionalProperties", "patternProperties", "nullable", "minItems", "description", "not", "definitions",
]  # fmt: skip
POINTERS = [
    "#",
    "#/$defs/a",
    "#/definitions/b",
    "#/$defs/missing",
    "http://127.0.0.1/x",
    "#/properties/a",
    "",
]
SCHEMA = st.recursive(
    JSON,
    lambda inner: st.dictionaries(
        st.sampled_from(KEYWORDS),
        inner
        | st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
        | st.sampled_from([*POINTERS, "string", "object", "array", "null", "integer"]),
        max_size=4,
    ),
    max_leaves=12,
)


def shape(schema):
    return declare("T", schema).removeprefix("export type T = ").removesuffix(";\n")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "unknown"),
        (True, "unknown"),
        (False, "never"),
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "number"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"type": "string", "nullable": True}, "string | null"),
        ({"enum": ["a", 1, None, True]}, '"a" | 1 | null | true'),
        ({"const": "it's \"so\"\u2028"}, '"it\'s \\"so\\"\\u2028"'),
        ({"type": "array"}, "unknown[]"),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
         "{\n  a?: string;\n}[]"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 1, "items": False},
         "[string, number?]"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "[string?, ...unknown[]]"),
        ({"type": "object"}, "{ [key: string]: unknown }"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "{ [key: string]: number }"),
        ({"type": "object", "additionalProperties": False}, "{ [key: string]: never }"),
        ({"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False},
         "{ [key: string]: string }"),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}, "string | string[]"),
        ({"oneOf": [{"type": "string"}, {"type": "string"}]}, "string"),
        ({"allOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}]},
         "(string | null) & string"),
        ({"type": "array", "items": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}, "unknown[]"),
        ({"$ref": "http://127.0.0.1/other.json"}, "unknown"),
        ({"$ref": "#"}, "unknown"),
        ({"type": "no such type"}, "unknown"),
        ({"enum": [float("inf")]}, "number"),
    ],
)  # fmt: skip
def test_a_schema_becomes_a_type(schema, expected):
    assert shape(schema) == expected


def test_an_object_becomes_an_interface_with_documented_members():
    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "What it is about"},
            "labels": {"type": "array", "items": {"type": "string"}},
            "odd key": {"type": "object", "properties": {"deep": {"type": "number"}}, "required": ["deep"]},
        },
        "required": ["title"],
    }
    assert declare("T", schema) == (
        "export interface T {\n"
        "  /** What it is about */\n"
        "  title: string;\n"
        "  labels?: string[];\n"
        '  "odd key"?: {\n'
        "    deep: number;\n"
        "  };\n"
        "}\n"
    )


def test_only_an_explicit_word_opens_an_object_that_names_its_members():
    named = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert "[key: string]" not in declare("T", named)
    assert "[key: string]: unknown;" in declare("T", named | {"additionalProperties": True})
    assert "[key: string]: number | string | undefined;" in declare(
        "T", named | {"additionalProperties": {"type": "number"}}
    )


def test_a_recursive_schema_becomes_named_types():
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Node"}, "self": {"$ref": "#"}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    assert declare("T", schema) == (
        "export interface T {\n  tree?: T_Node;\n  self?: T;\n}\nexport interface T_Node {\n  next?: T_Node;\n}\n"
    )


def test_two_definitions_that_fold_together_stay_apart():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/my-node"}, "b": {"$ref": "#/$defs/my_node"}},
        "$defs": {"my-node": {"type": "string"}, "my_node": {"type": "number"}},
    }
    text = declare("T", schema)
    assert "export type T_MyNode = string;" in text
    assert text.count("= number;") == 1


def test_an_alias_that_is_only_itself_is_unknown():
    loop = {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
    }
    assert "export type T_A = unknown;" in declare("T", loop)


def test_a_tuple_that_may_hold_a_list_of_itself_stays_finite_where_the_compiler_looks_into_it():
    again = {"type": "array", "items": {"$ref": "#"}}
    pair = {"type": "array", "prefixItems": [{"type": "string"}, again]}
    assert shape({"anyOf": [{"type": "null"}, pair]}) == "null | [string?, unknown[]?, ...unknown[]]"
    needed = pair | {"minItems": 2, "items": again}
    assert shape({"anyOf": [{"type": "null"}, needed]}) == "null | [string, T[], ...unknown[][]]"


def test_tuples_that_may_hold_lists_of_each_other_stay_finite_too():
    pairs = {name: {"anyOf": [{"type": "null"}, {"type": "array", "prefixItems": [
        {"type": "array", "items": {"$ref": f"#/$defs/{other}"}}]}]} for name, other in ("ab", "ba")}  # fmt: skip
    assert "export type T_A = null | [unknown[]?, ...unknown[]];" in declare(
        "T", {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": pairs}
    )


def test_a_tuple_in_a_property_may_hold_a_list_of_what_has_the_property():
    again = {"type": "array", "items": {"$ref": "#"}}
    pair = {"type": "array", "prefixItems": [{"type": "string"}, again], "items": again}
    assert "pair?: [string?, T[]?, ...T[][]];" in shape({"type": "object", "properties": {"pair": pair}})
    others = {"type": "object", "additionalProperties": pair}
    assert shape({"anyOf": [others, pair]}).endswith("T[][]] } | [string?, unknown[]?, ...unknown[][]]")


def test_a_very_deep_schema_ends_in_unknown():
    schema = {"type": "string"}
    for _ in range(500):
        schema = {"type": "array", "items": schema}
    assert shape(schema).startswith("unknown[][]")


def test_a_long_chain_of_references_is_followed_without_recursion():
    defs = {
        f"n{i}": {"type": "object", "properties": {"next": {"$ref": f"#/$defs/n{i + 1}"}}}
        for i in range(2000)
    }
    text = declare("T", {"$ref": "#/$defs/n0", "$defs": defs})
    assert "T_N1999" in text


@given(SCHEMA)
def test_any_value_sent_as_a_schema_becomes_some_type(schema):
    assert declare("T", schema).startswith(("export type T", "export interface T"))

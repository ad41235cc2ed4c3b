"""What an error says that a tool takes."""

import pytest
from tests.discovery.tools import tool

from agent_gate.discovery.cards import CAP
from agent_gate.discovery.tokens import count
from agent_gate.discovery.usage import usage, with_usage
from agent_gate.errors import InvalidArgs

PARENT = {
    "oneOf": [
        {"$ref": "#/$defs/page"},
        {"properties": {"database_id": {"type": "string"}}, "required": ["database_id"]},
    ]
}
SCHEMA = {
    "type": "object",
    "properties": {
        "parent": PARENT,
        "style": {"$ref": "#/$defs/style", "description": "How it looks"},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/style"}},
        "rule": {"allOf": [{"$ref": "#/$defs/style"}, {"properties": {"when": {"const": "now"}}}]},
        "self": {"$ref": "#/$defs/self"},
        "away": {"$ref": "other.json#/x"},
    },
    "required": ["parent"],
    "$defs": {
        "page": {"type": "object", "properties": {"page_id": {"type": "string"}}, "required": ["page_id"]},
        "style": {
            "type": "object",
            "properties": {
                "bold": {"type": "boolean"},
                "color": {"enum": ["red", "blue"]},
                "font": {"type": "object", "properties": {"size": {"type": "integer"}}},
            },
            "required": ["color"],
        },
        "self": {"$ref": "#/$defs/self"},
    },
}


def test_one_level_of_nesting_is_shown_wherever_it_is_defined():
    style = "{color: red|blue, bold?: boolean, font?: object}"
    takes = usage(SCHEMA)
    assert takes["parent"] == "{page_id: string}|{database_id: string}, required"
    assert takes["style"] == f"{style}: How it looks"
    assert takes["rows"] == f"[{style}]"
    assert takes["rule"].startswith("{color: red|blue")
    assert "when?: now" in takes["rule"]
    assert (takes["self"], takes["away"]) == ("any", "any")


def test_what_is_too_long_for_a_card_shows_only_its_keys():
    inner = {f"a_rather_long_key_{n}": {"enum": [f"first {n}", f"second {n}"]} for n in range(30)}
    schema = {"properties": {"all": {"type": "object", "properties": inner}}}
    said = usage(schema)["all"]
    assert said.startswith("{a_rather_long_key_0, a_rather_long_key_1, ")
    assert said.endswith("…}")
    assert count(said) <= 2 * CAP


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Invalid value for parent", "parent must be {page_id: string}|{database_id: string}"),
        ("Invalid value for style.font", "style must be {color: red|blue, bold?: boolean, font?: object}"),
        ("Invalid value for nothing", ""),
        ("Missing required argument: parent", ""),
        ("Invalid value for style\nIt must be of type object", ""),
    ],
)
def test_an_error_says_what_the_value_must_be(message, said):
    known = {name: SCHEMA["properties"][name] for name in ("parent", "style")}
    error = with_usage(InvalidArgs(message), tool(input_schema={**SCHEMA, "properties": known}))
    assert error.message == (f"{message}\n{said}" if said else message)
    assert "parent" in error.details["takes"]


def test_references_that_go_round_in_circles_end():
    loop = {"properties": {"a": {"$ref": "#/properties/b"}, "b": {"allOf": [{"$ref": "#/properties/a"}]}}}
    assert usage(loop) == {"a": "any", "b": "any"}

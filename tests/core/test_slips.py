"""Members inside of arguments that their schema does not name."""

import pytest

from agent_gate.core.nested import first_slip

TEXT = {"type": "string"}
POINT = {"type": "object", "properties": {"x": TEXT, "y": TEXT}}


def schema(inner, **more):
    return {"type": "object", "properties": {"a": inner}, **more}


@pytest.mark.parametrize(
    ("inner", "value", "path"),
    [
        (POINT, {"x": "1", "z": "2"}, ("a", "z")),
        ({"type": "array", "items": POINT}, [{"x": "1"}, {"z": "2"}], ("a", "1", "z")),
        ({"type": "array", "prefixItems": [TEXT, POINT]}, ["", {"z": "2"}], ("a", "1", "z")),
        ({"type": "object", "properties": {"b": POINT}}, {"b": {"z": "2"}}, ("a", "b", "z")),
        ({"type": "object", "additionalProperties": POINT}, {"any": {"z": "2"}}, ("a", "any", "z")),
        ({"anyOf": [{"type": "null"}, POINT]}, {"z": "2"}, ("a", "z")),
        ({"$ref": "#/$defs/Point"}, {"z": "2"}, ("a", "z")),
    ],
)
def test_a_member_that_nothing_names_is_found_wherever_it_stands(inner, value, path):
    slip = first_slip(schema(inner, **{"$defs": {"Point": POINT}}), {"a": value})
    assert slip is not None
    assert (slip.path, slip.known) == (path, {"x", "y"})


@pytest.mark.parametrize(
    ("inner", "value"),
    [
        (POINT, {"x": "1"}),
        (POINT, "text"),
        ({"type": "object"}, {"z": 1}),
        (True, {"z": 1}),
        ({**POINT, "additionalProperties": True}, {"z": 1}),
        ({**POINT, "additionalProperties": {}}, {"z": 1}),
        ({**POINT, "additionalProperties": TEXT}, {"z": "1"}),
        ({**POINT, "patternProperties": {"^z": TEXT}}, {"z": "1"}),
        ({"anyOf": [POINT, {"type": "object", "properties": {"z": TEXT}}]}, {"z": "1"}),
        ({"allOf": [POINT, {"type": "object", "additionalProperties": True}]}, {"z": "1"}),
        ({"type": "array"}, [{"z": 1}]),
        ({"$ref": "https://elsewhere.example/schema"}, {"z": 1}),
    ],
)
def test_what_a_schema_takes_or_says_nothing_about_is_no_slip(inner, value):
    assert first_slip(schema(inner), {"a": value}) is None


def test_a_schema_that_holds_itself_is_followed_as_deep_as_the_value():
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/Tree"}}}
    slip = first_slip(
        schema({"$ref": "#/$defs/Tree"}, **{"$defs": {"Tree": tree}}), {"a": {"child": {"chlid": {}}}}
    )
    assert slip is not None
    assert slip.path == ("a", "child", "chlid")

"""A sentence that a tool does not take is told which character it is, and what takes it."""

import pytest

from agent_gate.config.services.definition import to_definition
from agent_gate.config.services.settings import (
    ArgDefinition,
    RequestDefinition,
    ServiceConfig,
    ToolDefinition,
)
from agent_gate.core.catalog import Listing, build
from agent_gate.errors import InvalidArgs


def tool_with(**args):
    made = ToolDefinition(
        name="say", signature="", args=args, request=RequestDefinition(method="POST", path="/say")
    )
    definition = to_definition(ServiceConfig(name="s", url="http://127.0.0.1"), made)
    return build([Listing(key="s", namespace="s", definitions=[definition])]).tools[0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [("Dinner is ready, come!", ","), ("why?", "?"), ("a\nb", "U+000A"), ({"a": ["x", "y*"]}, "*")],
)
def test_the_refusal_names_the_character_and_the_cure_on_a_second_line(value, shown):
    with pytest.raises(InvalidArgs) as refused:
        tool_with().validate({"message": value})
    first, second = refused.value.message.split("\n")
    assert first == "Argument 'message' contains forbidden characters"
    assert second.startswith(
        f'It has "{shown}" in it. Leave it out, or have the argument declared with `text: true`'
    )


def test_the_schema_says_it_before_the_call():
    tool = tool_with(plain=ArgDefinition(description="Words"), free=ArgDefinition(text=True))
    assert (
        tool.input_schema["properties"]["plain"]["description"] == "Words (no * ? [ ] ( ) , or line breaks)"
    )
    assert "description" not in tool.input_schema["properties"]["free"]
    tool.validate({"free": "Dinner is ready, come!"})

import re

import jsonschema_rs
import msgspec
import pytest
from tests.discovery.tools import HOME, PAGE_SCHEMA, catalog, takes, tool

from agent_gate.core.tool import Definition
from agent_gate.discovery.browse import Browser, browse
from agent_gate.discovery.cards import Deck
from agent_gate.discovery.meta import (
    ARGUMENTS,
    BrowseArgs,
    ExecuteArgs,
    error_body,
    hydrated,
    meta_tools,
    parse,
    stripped,
)
from agent_gate.discovery.usage import usage, with_usage
from agent_gate.errors import DependencyUnavailable, InvalidArgs, PathInvalid, PathNotFound, ToolNotFound


def test_each_mode_has_its_meta_tools():
    names = {mode: [entry["name"] for entry in meta_tools(mode)] for mode in ("full", "proxy", "gateway")}
    assert names == {
        "full": [],
        "proxy": ["tool_hydrate", "tool_execute", "tool_view"],
        "gateway": ["tool_browse", "tool_execute", "tool_view"],
    }


def test_every_meta_schema_is_a_valid_closed_object():
    for mode in ("proxy", "gateway"):
        for entry in meta_tools(mode):
            jsonschema_rs.validator_for(entry["inputSchema"])
            assert entry["inputSchema"]["type"] == "object"
            assert set(entry["inputSchema"]["properties"]) == set(ARGUMENTS[entry["name"]].__struct_fields__)


def test_arguments_become_types():
    assert parse("tool_browse", {"query": "x"}) == BrowseArgs(query="x")
    assert parse("tool_execute", {"tool_id": "a:b", "args": {"n": 1}}) == ExecuteArgs("a:b", {"n": 1})


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("tool_browse", {"query": 5}),
        ("tool_browse", {"query": "x", "top_k": 0}),
        ("tool_browse", {"query": "x", "top_k": 51}),
        ("tool_browse", {"query": "x", "top_k": "5"}),
        ("tool_browse", {"extra": 1}),
        ("tool_execute", {}),
        ("tool_execute", {"tool_id": "a:b", "args": []}),
        ("tool_view", {"handle": "h", "selector": "head"}),
        ("tool_hydrate", {"tool_id": None}),
    ],
)
def test_wrong_arguments_are_refused_by_name(name, arguments):
    with pytest.raises(InvalidArgs, match=name):
        parse(name, arguments)


def test_an_unknown_meta_tool_names_the_known_ones():
    with pytest.raises(ToolNotFound, match="tool_browse"):
        parse("tool_guess", {})


def test_a_wrong_argument_of_a_meta_tool_is_told_what_it_takes():
    with pytest.raises(InvalidArgs, match=r"unknown field `tool`. It takes tool_id, args\.$"):
        parse("tool_execute", {"tool": "a:b"})


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("tool_execute", {"tool_id": "a:b", "path": "/x"}, "The tool's own arguments go into `args`."),
        (
            "tool_execute",
            {"tool_id": "a:b", "args": '{"path": "/x"'},
            "The text of `args` is no JSON object.",
        ),
        (
            "tool_view",
            {"handle": "result:1", "selector": "lines"},
            "The text of `selector` is no JSON object.",
        ),
    ],
)
def test_what_models_write_in_the_wrong_place_is_told_where_it_belongs(name, arguments, said):
    with pytest.raises(InvalidArgs, match=re.escape(said)):
        parse(name, arguments)


def test_a_selector_that_is_written_as_text_is_taken():
    wanted = parse("tool_view", {"handle": "result:1", "selector": {"type": "head"}})
    assert parse("tool_view", {"handle": "result:1", "selector": '{"type": "head"}'}) == wanted


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (InvalidArgs("m"), "ARGS_INVALID", False),
        (PathInvalid("m"), "PATH_INVALID", False),
        (PathNotFound("m"), "PATH_NOT_FOUND", False),
        (ToolNotFound("m"), "HYDRATE_FAILED", False),
        (DependencyUnavailable("m"), "DEPENDENCY_UNAVAILABLE", True),
    ],
)
def test_errors_have_the_promised_shape(error, code, retryable):
    assert error_body(error, "/x") == {"error": code, "message": "m", "path": "/x", "retryable": retryable}


def test_details_are_passed_on_without_repeating_the_path():
    error = PathNotFound("m", details={"path": "/x", "did_you_mean": ["/y"]})
    assert error_body(error, "/x")["details"] == {"did_you_mean": ["/y"]}


def test_a_refused_call_says_what_the_tool_takes():
    schema = {
        "type": "object",
        "properties": {
            "labels": {"type": "array", "items": {"type": "string"}},
            "state": {"enum": ["open", "closed"]},
            "title": {"type": "string", "description": "What\nit is"},
            "who": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "at": {"type": "object", "properties": {"line": {}, "column": {}}},
        },
        "required": ["title"],
    }
    assert usage(schema) == {
        "title": "string, required: What it is",
        "labels": "[string]",
        "state": "open|closed",
        "who": "string|null",
        "at": "{line, column}",
    }
    error = with_usage(InvalidArgs("Missing title", details={"at": "title"}), tool(input_schema=schema))
    assert error.details is not None
    assert next(iter(error.details["takes"])) == "title"


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"a": True}, "required": "a"}])
def test_odd_schemas_are_described_without_failing(schema):
    assert isinstance(usage(schema), dict)


def test_the_stripped_list_shows_every_tool_with_a_sentinel_schema_and_short_texts():
    long = Definition(name="long", description="And so on. " * 300, input_schema=takes(secret="Hidden"))
    tools = catalog({**HOME, "lab": [long]}).tools
    listed = stripped(tools, Deck.build(tools))
    assert [entry["name"] for entry in listed] == [each.wire for each in tools]
    assert all(entry["inputSchema"] == {"type": "object"} for entry in listed)
    assert all(
        entry["title"] == entry["_meta"]["agent-gate/tool-id"] == each.id
        for entry, each in zip(listed, tools, strict=True)
    )
    assert b"secret" not in msgspec.json.encode(listed)
    assert max(len(entry["description"]) for entry in listed) < 400


def test_a_caller_may_have_tool_ids_as_names():
    tools = catalog(HOME).tools
    listed = stripped(tools, Deck.build(tools), "tool_id")
    assert [set(entry) for entry in listed] == [{"name", "description", "inputSchema"}] * len(tools)
    assert [entry["name"] for entry in listed] == [each.id for each in tools]


def test_hydration_answers_the_whole_definition():
    made = tool(
        input_schema=takes(a="b"), output_schema={"type": "object"}, annotations={"readOnlyHint": True}
    )
    body = hydrated(made)
    assert body["tool_id"] == made.id
    assert body["inputSchema"] == takes(a="b")
    assert body["outputSchema"] == {"type": "object"}
    assert body["annotations"] == {"readOnlyHint": True}


def test_a_page_of_cards_fits_its_schema():
    home = catalog(HOME)
    page = browse(Browser(home.tools, home.titles()), query="create an issue")
    sent = msgspec.json.decode(msgspec.json.encode({"cards": page.cards}))
    assert [error.message for error in jsonschema_rs.validator_for(PAGE_SCHEMA).iter_errors(sent)] == []

import pytest
from tests.discovery.tools import catalog, tool

from agent_gate.core.catalog import Listing, build
from agent_gate.core.tool import Definition
from agent_gate.core.traits import Traits
from agent_gate.discovery.rank import Index
from agent_gate.discovery.verbs import CREATE, DELETE, READ, UPDATE, asked, done, has_effects, strangeness


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("which notes do I have", READ),
        ("how many orders are open", READ),
        ("give me the text of the page", READ),
        ("get rid of the old branch", DELETE),
        ("please add a row", CREATE),
        ("new card in the backlog", CREATE),
        ("make a chart", CREATE),
        ("make the header bold", CREATE | UPDATE),
        ("rename the sheet", UPDATE),
        ("weather tomorrow", 0),
        ("", 0),
    ],
)
def test_a_request_says_what_kind_of_doing_it_wants(query, kinds):
    assert asked(query) == kinds


@pytest.mark.parametrize(
    ("name", "description", "kinds"),
    [
        ("get_or_create_note", "", READ | CREATE),
        ("trello_delete_card", "Lists nothing.", DELETE),
        ("notes", "Retrieves the notes.", READ),
        ("weather", "Tomorrow's weather.", 0),
        ("x", "", 0),
    ],
)
def test_a_tool_says_what_it_does_in_its_name_or_first_word(name, description, kinds):
    assert done(tool(name, description)) == kinds


def test_only_a_clear_conflict_counts_fully():
    assert strangeness(READ, DELETE) == 1.0
    assert 0.0 < strangeness(CREATE, UPDATE) < 1.0
    assert strangeness(READ, READ | CREATE) == strangeness(0, DELETE) == strangeness(READ, 0) == 0.0


def test_a_request_to_see_things_is_not_answered_with_tools_that_delete_them():
    tools = catalog(
        {
            "lib": [
                Definition(name="delete_collection", description="Delete a collection of the library."),
                Definition(name="create_collection", description="Create a collection in the library."),
                Definition(name="get_collections", description="Get all collections, with parents and sizes, of a library."),
            ]
        }
    )  # fmt: skip
    found = Index(tools.tools, {}).search("show the collections of my library", 3)
    assert found[0].tool.name == "get_collections"


@pytest.mark.parametrize(
    ("definition", "effects"),
    [
        (Definition(name="git_log", description="Shows the commit logs"), False),
        (Definition(name="git_log"), False),
        (Definition(name="list_files"), False),
        (Definition(name="delete_file"), True),
        (Definition(name="get_or_create_user"), True),
        (Definition(name="run_command"), True),
        (Definition(name="thing", annotations={"readOnlyHint": False}), True),
        (Definition(name="thing", annotations={"destructiveHint": True}), True),
        (Definition(name="create_draft", traits=Traits(read_only=True)), False),
        (Definition(name="list_files", traits=Traits(destructive=True)), True),
    ],
)
def test_effects_are_said_of_tools_that_are_known_to_have_them(definition, effects):
    [found] = build([Listing(key="lab", namespace="lab", definitions=[definition])]).tools
    assert has_effects(found) is effects

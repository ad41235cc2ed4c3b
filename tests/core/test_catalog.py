import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools import arg, catalog, yaml_tool

from agent_gate.core.catalog import LONGEST_WIRE, Listing, Shelf, build
from agent_gate.core.tool import Definition
from agent_gate.errors import CatalogError, InvalidArgs


def listing(key, *names, **more):
    return Listing(
        key=key,
        namespace=key.lower().replace(" ", "_"),
        definitions=[Definition(name=name) for name in names],
        **more,
    )


def test_an_upstream_tool_is_named_by_its_server_and_found_by_every_name():
    made = build([listing("github-api", "create-issue")])
    tool = made.tools[0]
    assert tool.wire == "github_api__create_issue"
    assert (
        made.find(tool.id)
        is made.find("github_api__create_issue")
        is made.find("github-api:create-issue")
        is tool
    )


def test_a_digit_at_the_beginning_of_a_name_gets_an_underscore_before_it():
    assert [tool.wire for tool in build([listing("pass", "2fa-get")]).tools] == ["pass___2fa_get"]
    assert [tool.wire for tool in build([listing("pass", "2fa-get", prefix=False)]).tools] == ["_2fa_get"]


def test_a_redundant_prefix_is_dropped_in_the_alias():
    made = build([listing("notion", "notion-search")])
    assert made.find("notion:search") is made.find("notion:notion-search") is not None


def test_an_alias_that_two_tools_share_belongs_to_neither():
    made = build([listing("notion", "notion-search", "search")])
    assert made.find("notion:search") is None
    assert made.find("notion:notion-search").upstream == "notion-search"


def test_names_that_fold_together_end_in_different_digests():
    made = build([listing("s", "get-item", "get_item")])
    first, second = (tool.wire for tool in made.tools)
    assert first != second
    assert first.startswith("s__get_item_")


def test_no_source_moves_the_tool_of_another_from_its_name():
    with pytest.raises(CatalogError, match="a and a__b both have a tool named a__b__c"):
        build([listing("a", "b__c"), listing("a__b", "c")])


def test_a_name_that_looks_like_a_cut_one_is_refused():
    [tool] = build([listing("s", "x" * 100)]).tools
    with pytest.raises(CatalogError, match=tool.wire):
        build([listing("s", "x" * 100, tool.wire.removeprefix("s__"))])


def test_a_long_name_is_cut_to_what_every_client_takes():
    made = build([listing("server", "x" * 100, "x" * 101)])
    assert {len(tool.wire) for tool in made.tools} == {LONGEST_WIRE} == {46}
    assert len({tool.wire for tool in made.tools}) == 2


def test_a_server_cannot_take_the_name_of_a_meta_tool():
    made = build([listing("up", "tool_browse", prefix=True)])
    assert made.tools[0].wire == "up__tool_browse"
    made = build([listing("up", "tool_browse", "other", prefix=False)])
    assert [tool.wire for tool in made.tools] == ["other"]
    assert [(one.name, "the gateway itself" in one.reason) for one in made.excluded] == [
        ("tool_browse", True)
    ]


def test_of_two_servers_without_a_prefix_only_the_tools_that_clash_are_left_out():
    one = listing("one", "search", "list", prefix=False)
    first = build([one])
    both = build([one, listing("a", "search", "find", prefix=False)], first)
    assert {tool.wire: tool.source for tool in both.tools} == {"search": "one", "list": "one", "find": "a"}
    [left_out] = both.excluded
    assert (left_out.source, left_out.name) == ("a", "search")
    assert left_out.reason == "one has a tool named search too; rename it, or give a its prefix"


def test_two_tools_of_one_server_without_a_prefix_that_become_one_name_are_left_out():
    made = build([listing("up", "a-b", "a_b", "c", prefix=False)])
    assert [tool.wire for tool in made.tools] == ["c"]
    assert {one.name for one in made.excluded} == {"a-b", "a_b"}


def test_a_server_without_a_prefix_gives_way_to_one_with():
    made = build([listing("a", "b"), listing("up", "a__b", "c", prefix=False)])
    assert {tool.wire: tool.source for tool in made.tools} == {"a__b": "a", "c": "up"}


def test_two_equal_ids_in_one_upstream_are_refused():
    with pytest.raises(CatalogError):
        build([listing("up", "same", "same")])


def test_a_tool_with_a_broken_schema_is_left_out_and_its_siblings_stay():
    bad = Definition(
        name="bad",
        input_schema={"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x.json"}}},
    )
    made = build([Listing(key="up", namespace="up", definitions=[bad, Definition(name="good")])])
    assert [tool.upstream for tool in made.tools] == ["good"]
    assert made.excluded[0].name == "bad"


def test_the_digest_is_the_same_whatever_the_order_and_across_restarts():
    one = build([listing("a", "x", "y"), listing("b", "z")])
    other = build([listing("b", "z"), listing("a", "y", "x")])
    assert one.digest == other.digest


def test_a_source_that_is_down_keeps_its_tools_and_the_digest():
    up = build([listing("a", "x")])
    down = build([listing("a", "x", available=False)], up)
    assert down.digest == up.digest
    assert not down.find("a__x").available
    assert down.find("a__x").validate is up.find("a__x").validate


def test_a_swap_is_told_to_everybody_once():
    shelf, heard = Shelf(), []
    undo = shelf.subscribe(lambda before, now: heard.append((before.generation, now.generation)))
    shelf.swap(build([listing("a", "x")], shelf.catalog))
    undo()
    shelf.swap(build([], shelf.catalog))
    assert heard == [(0, 1)]


def test_characters_are_checked_before_the_schema_and_in_nested_values():
    tool = catalog(
        yaml_tool(
            "t",
            "{a}",
            {"a": arg(), "list": {"type": "array"}, "free": arg()},
            ["a"],
            text=frozenset({"free"}),
        )
    ).tools[0]
    for arguments in ({"a": "x*"}, {"a": "x", "list": [{"k": "a(b)"}]}, {"a": "x", "list": ["\n"]}):
        with pytest.raises(InvalidArgs, match="contains forbidden characters"):
            tool.validate(arguments)
    tool.validate({"a": "x", "free": "{{ states('x') }}, (any)"})


def test_of_very_many_wrong_values_one_is_named_and_the_rest_is_not_looked_for():
    schema = {"properties": {"names": {"type": "array", "items": {"type": "string"}}}}
    [tool] = catalog(Definition(name="greet", input_schema=schema)).tools
    with pytest.raises(InvalidArgs, match="Invalid value for names") as caught:
        tool.validate({"names": [1] * 2_000})
    assert len(caught.value.details["errors"]) == 1
    with pytest.raises(InvalidArgs, match=r"Invalid value for names\.0") as caught:
        tool.validate({"names": [1] * 3})
    assert len(caught.value.details["errors"]) == 3


@pytest.mark.parametrize(
    ("schema", "value", "advice"),
    [
        ({"type": "integer"}, "hunter2", "It must be of type integer"),
        ({"type": ["string", "null"]}, 71, "It must be of type null, string"),
        ({"minimum": 0}, -71, "It must be at least 0"),
        ({"enum": ["red", "green", 3]}, "hunter2", "It must be one of red, green, 3"),
        ({"const": "on"}, "hunter2", "It must be on"),
        ({"pattern": "^[a-z]{2}$"}, "hunter2", "It must fit the pattern ^[a-z]{2}$"),
        ({"maxLength": 3}, "hunter2", "It must have at most 3 characters"),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, "hunter2", ""),
    ],
)
def test_a_tool_that_a_server_describes_says_what_an_argument_must_be(schema, value, advice):
    [tool] = catalog(Definition(name="t", input_schema={"properties": {"a": schema}})).tools
    with pytest.raises(InvalidArgs) as caught:
        tool.validate({"a": value})
    assert caught.value.message == "Invalid value for a" + (f"\n{advice}" if advice else "")
    assert str(value) not in str(caught.value.as_dict())


def test_a_long_list_of_choices_is_cut_in_the_advice():
    schema = {"properties": {"a": {"enum": [f"choice {number}" for number in range(500)]}}}
    [tool] = catalog(Definition(name="t", input_schema=schema)).tools
    with pytest.raises(InvalidArgs) as caught:
        tool.validate({"a": "x"})
    assert len(caught.value.message) < 400


def test_a_message_names_the_argument_and_never_its_value():
    tool = catalog(yaml_tool("t", "{a}", {"a": arg(pattern="^x$")}, ["a"])).tools[0]
    with pytest.raises(InvalidArgs) as caught:
        tool.validate({"a": "hunter2"})
    assert caught.value.message == "Invalid value for a\nIt must fit the pattern ^x$"
    assert "hunter2" not in str(caught.value.as_dict())


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=60))
def test_any_name_becomes_an_id_and_a_wire_name_that_clients_accept(name, key):
    from agent_gate.core.ids import fold_namespace, parse_tool_id

    made = build([Listing(key=key, namespace=fold_namespace(key), definitions=[Definition(name=name)])])
    tool = made.tools[0]
    assert parse_tool_id(tool.id).namespace == fold_namespace(key)
    assert len(tool.wire) <= LONGEST_WIRE
    assert tool.wire.replace("_", "a").isascii()
    assert tool.wire.replace("_", "a").isalnum()
    assert not tool.wire[0].isdigit()

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.discovery.tools import HOME, catalog

from agent_gate.core.tool import Definition, Tool
from agent_gate.discovery.tree import MAX_CHILDREN, Branch, find, grow, parse_path
from agent_gate.errors import PathInvalid, PathNotFound

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "path_grammar.json").read_text())["vectors"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: repr(vector["path"])[:24])
def test_paths_follow_the_grammar(vector):
    if vector.get("spec_ok", vector["ok"]):
        assert list(parse_path(vector["path"])) == vector["segments"]
    else:
        with pytest.raises(PathInvalid):
            parse_path(vector["path"])


def test_the_root_has_one_node_per_namespace_however_few_tools_there_are():
    root = grow(catalog(HOME).tools)
    assert list(root.nodes) == ["files", "github", "sheets", "weather"]
    assert not root.leaves


def test_a_small_namespace_holds_its_tools_directly():
    node = find(grow(catalog(HOME).tools), "/github")
    assert isinstance(node, Branch)
    assert list(node.leaves) == ["create_issue", "create_pull_request", "list_issues", "search_code"]


@pytest.mark.parametrize("path", ["/github", "/github/create_issue", "/"])
def test_a_trailing_star_says_the_same_as_leaving_it_out(path):
    root = grow(catalog(HOME).tools)
    assert find(root, f"{path.rstrip('/')}/*") is find(root, path)


def test_an_absent_path_says_what_is_close():
    root = grow(catalog(HOME).tools)
    with pytest.raises(PathNotFound) as caught:
        find(root, "/github/create_isue")
    assert caught.value.details is not None
    assert "/github/create_issue" in caught.value.details["did_you_mean"]
    assert "Did you mean /github/create_issue? " in caught.value.message
    with pytest.raises(PathNotFound):
        find(root, "/github/create_issue/deeper")


def many() -> list[Definition]:
    things = ["issue", "branch", "release", "label", "comment", "milestone"]
    actions = ["create", "update", "delete", "list", "get", "search"]
    return [Definition(name=f"{action}_{thing}") for action in actions for thing in things]


def test_a_large_namespace_is_clustered_by_the_things_its_tools_are_about():
    node = find(grow(catalog({"hub": many()}).tools), "/hub")
    assert isinstance(node, Branch)
    assert list(node.nodes) == ["branch", "comment", "issue", "label", "milestone", "release"]
    leaf = find(grow(catalog({"hub": many()}).tools), "/hub/issue/create_issue")
    assert isinstance(leaf, Tool)
    assert leaf.name == "create_issue"


def test_one_more_tool_leaves_the_other_clusters_as_they_were():
    before = find(grow(catalog({"hub": many()}).tools), "/hub")
    after = find(grow(catalog({"hub": [*many(), Definition(name="archive_release")]}).tools), "/hub")
    assert isinstance(before, Branch)
    assert isinstance(after, Branch)
    for label in set(before.nodes) - {"release"}:
        assert list(before.nodes[label].leaves) == list(after.nodes[label].leaves)


def leaves(node: Branch) -> list[tuple[str, Tool]]:
    own = [(f"{node.path}/{segment}", tool) for segment, tool in node.leaves.items()]
    return own + [pair for child in node.nodes.values() for pair in leaves(child)]


def check(root: Branch, tools: tuple[Tool, ...]) -> None:
    found = leaves(root)
    assert sorted(tool.id for _, tool in found) == sorted(tool.id for tool in tools)
    for path, tool in found:
        parse_path(path)
        assert find(root, path) is tool
    todo = list(root.nodes.values())
    while todo:
        node = todo.pop()
        assert len(node.nodes) + len(node.leaves) <= MAX_CHILDREN
        assert not (node.nodes and node.leaves)
        todo.extend(node.nodes.values())


names = st.lists(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,20}", fullmatch=True), min_size=1, max_size=80, unique=True
)


@settings(max_examples=60, deadline=None)
@given(names=names, seed=st.integers())
def test_every_tool_has_one_path_whatever_its_name_and_in_any_order(names, seed):
    tools = catalog({"lab": [Definition(name=name) for name in names]}).tools
    shuffled = list(tools)
    random.Random(seed).shuffle(shuffled)
    root = grow(tools)
    check(root, tools)
    assert [path for path, _ in leaves(root)] == [path for path, _ in leaves(grow(shuffled))]


def test_twenty_thousand_tools_of_one_server_stay_within_twenty_children():
    definitions = [Definition(name=f"get_record_{number}") for number in range(20_000)]
    tools = catalog({"bulk": definitions}).tools
    root = grow(tools)
    check(root, tools)
    assert len(root.nodes["bulk"].nodes) <= MAX_CHILDREN


def test_names_that_fold_together_get_paths_of_their_own():
    tools = catalog(
        {"lab": [Definition(name="Get.It"), Definition(name="get_it"), Definition(name="_get-it")]}
    ).tools
    root = grow(tools)
    check(root, tools)
    assert len({path for path, _ in leaves(root)}) == 3

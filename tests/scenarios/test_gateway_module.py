"""The scenarios of the module for scripts and its filters, one test each under the scenario's own name."""

import re

from tests.scenarios.gateway_scenes import exported, module, tool_names
from tests.waiting import wait_until


def test_serve_tools_module(gateway):
    reply = module(gateway)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/typescript"


def test_module_contains_all_servers(gateway):
    servers = re.findall(r"^  (\w+): {", exported(gateway), re.MULTILINE)
    assert {"time", "githubApi", "_123server", "slow", "lab"} <= set(servers)


def test_module_uses_typescript_naming_conventions(gateway):
    text = module(gateway).body.decode()
    assert "interface GithubApiCreateEntitiesParams" in text
    assert re.search(r"^    createEntities: \(args: GithubApiCreateEntitiesParams", text, re.MULTILINE)


def test_module_cached_in_memory(gateway):
    first, second = module(gateway), module(gateway)
    assert (first.body, first.headers["etag"]) == (second.body, second.headers["etag"])
    known = {"If-None-Match": first.headers["etag"]}
    assert gateway.request("GET", "/runtime/tools.ts", headers=known).status == 304


def test_cache_invalidation_on_changes(gateway):
    before = module(gateway, "?server=lab")
    assert "freshlyMade" not in before.body.decode()
    assert gateway.call("lab__grow", {"key": "freshly_made"}).status == 200
    wait_until(lambda: "freshlyMade" in exported(gateway, "?server=lab"), "the new module")
    assert module(gateway, "?server=lab").headers["etag"] != before.headers["etag"]


def test_empty_module_with_no_servers(empty):
    assert exported(empty) == "{};"


def test_filter_by_server_name(gateway):
    text = exported(gateway, "?server=time")
    assert re.findall(r"^  (\w+): {", text, re.MULTILINE) == ["time"]


def test_filter_by_server_and_tool(gateway):
    text = exported(gateway, "?server=time&tool=getCurrentTime")
    assert re.findall(r"^    (\w+): \(", text, re.MULTILINE) == ["getCurrentTime"]


def test_return_all_tools_without_filter(gateway):
    listed = [name for name in tool_names(gateway) if name.startswith("github_api__")]
    functions = re.findall(r'call(?:Tool|Text)\("(github_api__\w+)"', exported(gateway))
    assert sorted(functions) == sorted(listed)


def test_invalid_server_name(gateway):
    assert exported(gateway, "?server=nonexistent") == "{};"


def test_invalid_tool_name_in_the_filter(gateway):
    assert exported(gateway, "?server=time&tool=nonexistent") == "{ time: {} };"


def test_tool_filter_requires_server(gateway):
    reply = module(gateway, "?tool=getCurrentTime")
    assert reply.status == 400
    assert "server=" in reply.json["error"]["message"]

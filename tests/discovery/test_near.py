"""A name that no tool has is answered with the tools that were probably meant."""

import pytest

from agent_gate.core.catalog import Listing, build
from agent_gate.core.tool import Definition
from agent_gate.discovery.near import near_tools

TOOLS = build(
    [
        Listing(
            key="git",
            namespace="git",
            definitions=[Definition(name="git_log"), Definition(name="git_status")],
        ),
        Listing(key="files", namespace="files", definitions=[Definition(name="edit_file")]),
    ]
).tools
LOG = next(tool.id for tool in TOOLS if "git_log" in tool.id)


@pytest.mark.parametrize(
    "name", ["git_log", "git:git_log", "git__git_log", "git:git_log#00000000", "Git-Log", "git_logs"]
)
def test_an_id_without_its_namespace_or_with_a_slip_finds_its_tool(name):
    assert near_tools(name, TOOLS)[0] == LOG


@pytest.mark.parametrize("name", ["", "#", "send_mail", "x"])
def test_a_name_that_is_like_none_offers_nothing(name):
    assert near_tools(name, TOOLS) == []

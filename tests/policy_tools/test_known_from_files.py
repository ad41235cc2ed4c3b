"""`check` knows the tools that the files alone tell of, whichever kind of source has them."""

import pytest

from agent_gate.cli.commands.check import check

CONFIG = """\
agents: {pi: {token: "0123456789abcdef"}}
permissions: permissions.yaml
"""
KNOWN = "browser: {}\nweb: {}\n"


def findings(folder, *rules, more=KNOWN):
    (folder / "config.yaml").write_text(CONFIG + more)
    listed = "".join(f"  - {rule}\n" for rule in rules)
    (folder / "permissions.yaml").write_text(f"rules:\n{listed}")
    faults, warnings = check(folder / "config.yaml", None)
    return [fault.message for fault in faults] + warnings


@pytest.mark.parametrize(
    "rule",
    [
        '{pattern: "browser_*", read_only: true, action: allow}',
        '{pattern: "browser_click(https://shop.example, Place order)", action: allow, extra: [facts.submits]}',
        '{pattern: "browser_navigate(https://shop.example/*)", action: deny}',
        '{pattern: "weather_get(*)", action: allow}',
        '{pattern: "browser_fetch(*)", action: ask}',
        '{pattern: "connections_status(*)", action: allow}',
        '{pattern: "agents__sign_in(*)", action: deny}',
    ],
)
def test_a_rule_about_a_tool_that_a_kind_always_has_is_no_fault(tmp_path, rule):
    assert findings(tmp_path, rule) == []


@pytest.mark.parametrize("pattern", ["browser_clik(*)", "wether_get(*)", "connexions_status(*)"])
def test_a_misspelt_one_is(tmp_path, pattern):
    [said] = findings(tmp_path, f'{{pattern: "{pattern}", action: deny}}')
    assert "matches no tool" in said


def test_without_their_key_these_tools_are_not_there(tmp_path):
    service = (
        "services: {lab: {url: 'http://127.0.0.1:9', tools: {ping: {request: {method: GET, path: /}}}}}\n"
    )
    [said] = findings(tmp_path, '{pattern: "browser_click(*)", action: allow}', more=service)
    assert "matches no tool" in said


def test_an_expectation_may_be_about_such_a_tool(tmp_path):
    tests = "policy_tests: [{tool: weather_get, args: {location: Oslo}, expect: allow}]\n"
    allow = '{pattern: "weather_get(*)", action: allow}'
    (tmp_path / "config.yaml").write_text(CONFIG + KNOWN)
    (tmp_path / "permissions.yaml").write_text(f"rules:\n  - {allow}\n{tests}")
    assert check(tmp_path / "config.yaml", None) == ([], [])

"""The names that a rule may use for a tool: as it is listed to allow it, as anybody could write it to refuse it."""

import pytest

from agent_gate.cli.commands.check import check
from agent_gate.core.catalog import Listing, build
from agent_gate.core.ids import fold_namespace
from agent_gate.core.tool import Definition
from agent_gate.policy import Policy, Subject
from agent_gate.policy.lint import Unlisted, lint
from agent_gate.policy.rule import make_rule


def tool_of(key, name, *, prefix=True, own=""):
    definitions = [Definition(name=name, own=own)]
    [tool] = build(
        [Listing(key=key, namespace=fold_namespace(key), definitions=definitions, prefix=prefix)]
    ).tools
    return tool


def decide(pattern, action, tool, **more):
    policy = Policy(
        [make_rule(pattern=pattern, action=action, **more)], [make_rule(pattern="*", action="allow")]
    )
    return policy.decide(Subject(tool, {"a": 1}, tool.sign({"a": 1}), "pi")).effect


NOTION = tool_of("notion", "API-post-page")
TOOLS = {
    "notion__API-post-page": NOTION,
    "notion:API-post-page": NOTION,
    "notion__API_post_page": NOTION,
    "files__read.text": tool_of("files", "read.text"),
    "files:read.text": tool_of("files", "read.text"),
    "pw__browser/click": tool_of("pw", "browser/click"),
    "pw:browser/click": tool_of("pw", "browser/click"),
    "pw__my tool": tool_of("pw", "my tool"),
    "My-Server__Push": tool_of("My-Server", "Push"),
    "My_Server__Push": tool_of("My-Server", "Push"),
    "my-server__Push": tool_of("My-Server", "Push"),
    "My-Server:Push": tool_of("My-Server", "Push"),
    "my-server:Push": tool_of("My-Server", "Push"),
    "1pass__2fa-get": tool_of("1pass", "2fa-get"),
    "list-pages": tool_of("cdp", "list-pages", prefix=False),
    "list_pages": tool_of("cdp", "list-pages", prefix=False),
    "cdp:list-pages": tool_of("cdp", "list-pages", prefix=False),
    "long__" + "get-" * 20: tool_of("long", "get-" * 20),
    "gh__delete-repo": tool_of("gh", "remove", own="delete-repo"),
    "gh__delete_repo": tool_of("gh", "remove", own="delete-repo"),
    "gh:remove": tool_of("gh", "remove", own="delete-repo"),
}


@pytest.mark.parametrize("written", TOOLS)
def test_a_rule_that_refuses_holds_in_every_spelling_of_a_name(written):
    tool = TOOLS[written]
    for pattern in (f"{written}(*)", f"{written}(a=1)", f"{written}*", f"?{written[1:]}(*)"):
        assert decide(pattern, "deny", tool) == "deny"
        assert decide(pattern, "ask", tool) == "ask"
    assert Policy([make_rule(pattern=f"{written}(*)", action="deny")]).hides(tool, "pi")
    assert lint([make_rule(pattern=f"{written}(*)", action="deny")], [], [tool]) == []
    assert decide(f"{written}x(*)", "deny", tool) == "allow"


@pytest.mark.parametrize(
    "written", [name for name, tool in TOOLS.items() if name not in (tool.wire, tool.alias)]
)
def test_a_rule_that_allows_needs_the_listed_name_and_check_says_which(written):
    tool = TOOLS[written]
    rule = make_rule(pattern=f"{written}(a=*)", action="allow", where="p:1")
    asked = Policy([rule]).decide(Subject(tool, {"a": 1}, tool.sign({"a": 1}), "pi"))
    assert asked.effect == "ask"
    [finding] = lint([rule], [], [tool])
    assert finding.message.endswith(f"an allow rule needs the name as it is listed. Write {tool.wire}(a=*)")


def test_a_namespace_may_be_written_as_the_file_has_it_to_refuse():
    tool = tool_of("My-Server", "Push")
    assert decide("*", "deny", tool, namespace="My-S*") == "deny"
    assert decide("*", "deny", tool, namespace="my-s*") == "deny"
    allow = Policy([make_rule(pattern="*", action="allow", namespace="My-S*")])
    assert allow.decide(Subject(tool, {}, tool.sign({}), "pi")).effect == "ask"


def test_an_allow_in_a_spelling_that_no_listed_name_has_is_found_without_the_server():
    others = [Unlisted("notion", ("notion__", "notion:"), ("notion__", "notion:"))]
    rules = [
        make_rule(pattern="notion__API-post-page(*)", action="allow", where="p:1"),
        make_rule(pattern="notion__API_post_page(*)", action="allow", where="p:2"),
        make_rule(pattern="notion:API-post-page(*)", action="allow", where="p:3"),
        make_rule(pattern="notion__resources/read(*)", action="allow", where="p:4"),
        make_rule(pattern="notion__API-get(*)", action="deny", where="p:5"),
    ]
    [finding] = lint(rules, [], [], others)
    assert finding.where == "p:1"
    assert "Write notion__API_post_page(*)" in finding.message


def test_check_takes_a_servers_own_spelling_in_rules_that_refuse_and_in_policy_tests(tmp_path):
    (tmp_path / "config.yaml").write_text("mcpServers: {My-Notion: {command: python3}}\n")
    (tmp_path / "permissions.yaml").write_text(
        "rules:\n"
        '- {pattern: "My-Notion__API-post-page(*)", action: deny}\n'
        '- {pattern: "my-notion__API-get(*)", action: allow}\n'
        "policy_tests:\n"
        "- {tool: My_Notion__API_post_page, expect: deny}\n"
        "- {tool: My-Notion__API-post-page, args: {a: 1}, expect: deny}\n"
        "- {tool: My_Notion__API_post_pages, expect: ask}\n"
    )
    [fault], _ = check(tmp_path / "config.yaml", None)
    assert fault.where.endswith("permissions.yaml:3:3")

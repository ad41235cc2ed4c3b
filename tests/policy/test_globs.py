"""What patterns say about every call of a tool, and about no call of any."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools import HOME_TOOLS, arg, catalog, yaml_tool

from agent_gate.access.view import View
from agent_gate.core.call import Caller
from agent_gate.core.catalog import Shelf
from agent_gate.core.tool import Definition
from agent_gate.policy import Policy, Subject
from agent_gate.policy.lint import Unlisted, lint
from agent_gate.policy.rule import make_rule

HOME = catalog(*HOME_TOOLS)
OPEN = {"type": "object", "properties": {"q": {}}}


def vault(name="secret_read", schema=OPEN):
    return catalog(Definition(name=name, input_schema=schema), key="vault").tools[0]


def denies(*patterns):
    return Policy([make_rule(pattern=pattern, action="deny") for pattern in patterns])


@pytest.mark.parametrize(
    ("patterns", "hidden"),
    [
        (["*__secret*"], True),
        (["*secret*"], True),
        (["vault__*_read*"], True),
        (["v*t__s*d*"], True),
        (["*__secret_read(*)"], True),
        (["?ault__secret_read*"], True),
        (["[a-v]ault__secret_read*"], True),
        (["[!a-v]ault__secret_read*"], False),
        (["*__secret_read"], False),
        (["*__secret_read", "*__secret_read(*)"], True),
        (["*__secret_read", "*(*=*)"], True),
        (["*__secret_read(q=*"], False),
        (["*__secret*=?*"], False),
        (["*__secret*)"], True),
        (["*__public*"], False),
        (["*q=*"], False),
        (["*(*", "vault__secret_read"], True),
    ],
)
def test_a_tool_is_hidden_wherever_the_wildcards_of_the_deny_rules_stand(patterns, hidden):
    assert denies(*patterns).hides(vault(), "a") is hidden


def test_a_denied_tool_is_absent_from_every_view_of_its_caller_only():
    shelf = Shelf()
    shelf.swap(catalog(Definition(name="secret_read"), Definition(name="list"), key="vault"))
    view = View(shelf, lambda: Policy([make_rule(pattern="*__secret*", action="deny", callers=("pi",))]))
    pi, coder = Caller(name="pi"), Caller(name="coder")
    assert [tool.wire for tool in view.tools(pi)] == ["vault__list"]
    assert view.find(pi, "vault__secret_read") is None
    assert len(view.tools(coder)) == 2


@pytest.mark.parametrize(
    ("pattern", "hidden"),
    [
        ("*_service*", True),
        ("*_service(*.*, *)", True),
        ("*_service(*, light.*)", False),
        ("*_service(*.turn_on, *)", False),
        ("ha_call_service", False),
    ],
)
def test_a_tool_with_a_template_is_hidden_when_no_values_escape(pattern, hidden):
    assert denies(pattern).hides(HOME.find("ha_call_service"), "a") is hidden


def test_a_tool_that_takes_nothing_is_hidden_by_its_name():
    none = {"type": "object", "properties": {}, "additionalProperties": False}
    assert denies("*__ping").hides(vault("ping", none), "a")
    assert not denies("*__ping").hides(vault("ping"), "a")


def test_a_tool_that_takes_only_what_it_declares_is_not_hidden_by_its_bare_name():
    closed = {"type": "object", "properties": {"q": {}}, "additionalProperties": False}
    assert not denies("*__ping").hides(vault("ping", closed), "a")
    assert denies("*__ping*").hides(vault("ping", closed), "a")


def test_patterns_for_short_values_leave_the_tool_listed_for_longer_ones():
    [tool] = catalog(yaml_tool("read", "{q}", {"q": arg()}, ["q"])).tools
    short = ["read()", "read(?)", "read(??)"]
    assert not denies(*short).hides(tool, "a")
    assert denies(*short, "read(???*)").hides(tool, "a")


@pytest.mark.parametrize("character", ["\0", "\U0010ffff"])
def test_a_character_at_the_end_of_all_characters_is_one_like_others(character):
    assert not denies(f"vault__secret_read({character}*").hides(vault(), "a")
    assert denies(f"vault__secret_read*[!{character}]*", "vault__secret_read*").hides(vault(), "a")


def test_a_condition_on_arguments_or_a_default_never_hides():
    when = Policy([make_rule(pattern="*__secret*", action="deny", when={"q": 1})])
    default = Policy([], [make_rule(pattern="*__secret*", action="deny")])
    assert not when.hides(vault(), "a")
    assert not default.hides(vault(), "a")


def test_a_pattern_that_is_hard_to_judge_leaves_the_tool_listed_and_its_calls_denied():
    pattern = "vault__secret_read*" + "?a*b" * 12 + "*"
    policy = denies(pattern, "vault__secret_read([ab]*")
    assert not policy.hides(vault(), "a")
    arguments = {"q": "xab" * 12}
    assert policy.decide(Subject(vault(), arguments, vault().sign(arguments), "a")).effect == "deny"


PATTERNS = st.text("ab_(=, )*?[]!-", min_size=1, max_size=9)
VALUES = st.text("ab=,() -", max_size=5)


@settings(max_examples=500, deadline=None)
@given(st.lists(PATTERNS, min_size=1, max_size=3), st.lists(VALUES, min_size=1, max_size=6))
def test_what_is_hidden_is_denied_whatever_it_is_called_with(patterns, values):
    policy = denies(*patterns)
    for tool in (vault("a", OPEN), catalog(yaml_tool("ab", "{v}, {w}", {"v": arg(), "w": arg()})).tools[0]):
        if policy.hides(tool, "x"):
            for value in values:
                arguments = {"v": value, "w": value[::-1]}
                assert policy.decide(Subject(tool, arguments, tool.sign(arguments), "x")).effect == "deny"


def faults(*patterns, tools=(), all_known=False):
    rules = [make_rule(pattern=p, action="deny", where=f"p.yaml:{n}") for n, p in enumerate(patterns, 1)]
    return {
        found.where: found.message for found in lint(rules, [], tools, () if all_known else (Unlisted(),))
    }


@pytest.mark.parametrize(
    "pattern",
    [
        "git__commit(message=fix, then push)",
        "git__commit(message=a=b)",
        "git__commit(message=a (b))",
        "git__commit(message=a,b*",
        "git__push(remote=origin, branch=main)",
        "git__push(origin)",
        "git push(*)",
        "git__push(branch=main) ",
        "*(b=*, a=secret*)",
        "git:push@1.4.0(*)",
        "git:push#0123abcd*",
    ],
)
def test_a_pattern_that_no_signature_can_match_is_a_fault_with_its_place(pattern):
    [(where, message)] = faults(pattern).items()
    assert where == "p.yaml:1"
    assert "can never match" in message
    assert "%2C" in message


@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "git__*",
        "git__push",
        "git__push(*)",
        "git__push()",
        "git:push(branch=main*)",
        "git__push(branch=main, remote=origin)",
        "git__commit(message=a%2Cb)",
        "git__commit(message=*, then*=x)",
        "*__secret*",
        "*rm -rf*",
        "git__[a-z]*(*=*)",
        'fs__write(content={"a":1}*',
        "*(a=*, b=1*)",
    ],
)
def test_a_pattern_that_some_signature_matches_is_no_fault(pattern):
    assert not faults(pattern)


def test_a_pattern_is_judged_by_the_template_of_the_tool_it_names():
    fit = faults("ha_call_service(lock.*, *)", "ha_get_states", tools=HOME.tools, all_known=True)
    unfit = faults(
        "ha_call_service(lock)",
        "ha_call_service(lock.open, a, b)",
        "ha_get_states(*)",
        tools=HOME.tools,
        all_known=True,
    )
    assert not fit
    assert len(unfit) == 3


@settings(max_examples=500, deadline=None)
@given(PATTERNS, st.dictionaries(st.text("ab", min_size=1, max_size=2), VALUES, max_size=3))
def test_what_lint_calls_impossible_never_matches(pattern, arguments):
    tool = vault("a", {"type": "object"})
    decided = denies(pattern).decide(Subject(tool, arguments, tool.sign(arguments), "x"))
    assert not (faults(pattern) and decided.effect == "deny")


SERVERS = (Unlisted("git", ("git__", "git:")), Unlisted("my_files", ("my_files__", "my_files:")))


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("git__push(*)", True),
        ("git:push(*)", True),
        ("*__push*", True),
        ("g[ij]t__log", True),
        ("my_files__resources/read(*)", True),
        ("gti__push(*)", False),
        ("git_push(*)", False),
        ("git__", False),
        ("files:read*", False),
    ],
)
def test_a_rule_must_be_named_like_the_tools_of_some_server(pattern, fits):
    rule = make_rule(pattern=pattern, action="deny", where="p.yaml:1")
    assert [found.where for found in lint([rule], [], (), SERVERS)] == ([] if fits else ["p.yaml:1"])


def test_a_rule_on_a_namespace_that_nothing_has_is_told_those_there_are():
    rule = make_rule(namespace="gti", action="deny", where="p.yaml:1")
    [found] = lint([rule], [], HOME.tools, SERVERS)
    assert found.message.endswith("matches no tool; the namespaces are git, home, my_files")
    assert lint([rule], [], HOME.tools, (*SERVERS, Unlisted())) == []


def test_a_rule_with_a_mistyped_name_is_told_the_nearest_one():
    [found] = lint([make_rule(pattern="my_fils__read*", action="deny", where="p.yaml:1")], [], (), SERVERS)
    assert "tools are named like my_files__…" in found.message


def test_a_bare_name_can_never_match_a_tool_that_needs_arguments():
    needs = vault("a", {"type": "object", "properties": {"q": {}}, "required": ["q"]})
    assert "can never match" in faults(needs.wire, tools=[needs], all_known=True)["p.yaml:1"]
    assert faults(f"{needs.wire}*", tools=[needs], all_known=True) == {}
    assert faults(vault("a", OPEN).wire, tools=[vault("a", OPEN)], all_known=True) == {}

"""Arguments that a tool does not declare: they take no call out of a rule that refuses, and ride on no allow."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools import arg, catalog, yaml_tool

from agent_gate.core.declared import declared_by
from agent_gate.core.tool import Definition
from agent_gate.core.validate import MOST_UNDECLARED
from agent_gate.errors import InvalidArgs
from agent_gate.policy import Policy, Subject
from agent_gate.policy.globs import Glob
from agent_gate.policy.lint import lint
from agent_gate.policy.rule import make_rule

BRANCH = {"properties": {"branch": {}}}
WAYS = {
    "open": {**BRANCH, "additionalProperties": True},
    "any": {**BRANCH, "additionalProperties": {}},
    "text": {**BRANCH, "additionalProperties": {"type": "string"}},
    "silent": BRANCH,
    "allOf": {"allOf": [BRANCH]},
    "anyOf": {"anyOf": [{"allOf": [BRANCH]}, {}]},
    "oneOf": {"oneOf": [BRANCH]},
    "if": {"if": BRANCH},
    "then": {"if": {}, "then": BRANCH},
    "else": {"if": {"required": ["zzz"]}, "else": BRANCH},
    "reference": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b~1c"}, "b/c": BRANCH}},
    "round": {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#"}, BRANCH]}}},
    "anchor": {"$ref": "#here", "$defs": {"a": {"$anchor": "here", **BRANCH}}},
    "depends": {"dependentSchemas": {"branch": BRANCH}},
    "pattern": {"patternProperties": {"^bran": {}}},
    "pattern of all": {**BRANCH, "patternProperties": {"": {}}},
    "pattern of any": {**BRANCH, "patternProperties": {"^[\\s\\S]*$": {}}},
    "none": {},
}


def tool_of(schema, name="pushx", key="box"):
    [tool] = catalog(Definition(name=name, input_schema={"type": "object", **schema}), key=key).tools
    return tool


def decide(rules, tool, arguments, default="ask"):
    policy = Policy(rules, [make_rule(pattern="*", action=default)])
    return policy.decide(Subject(tool, arguments, tool.sign(arguments), "pi")).effect


@pytest.mark.parametrize("schema", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    "aside", [{"a": ""}, {"z": "1"}, {"a": "", "c": "1", "z": "x" * 500}, {"é": "e\u0301"}]
)
@pytest.mark.parametrize(
    "pattern", ["box__pushx(branch=main*)", "box__pushx(branch=main)", "box:pushx(*branch=main)"]
)
def test_a_denied_call_stays_denied_with_an_argument_beside_it(schema, aside, pattern):
    tool = tool_of(schema)
    tool.validate({"branch": "main", **aside})
    for action in ("deny", "ask"):
        rules = [make_rule(pattern=pattern, action=action)]
        assert decide(rules, tool, {"branch": "main", **aside}, "allow") == action
        assert decide(rules, tool, {"branch": "dev", **aside}, "allow") == "allow"


@pytest.mark.parametrize("schema", WAYS.values(), ids=WAYS)
def test_what_is_declared_is_what_the_schema_names_for_the_whole_object(schema):
    declared = declared_by(Definition(name="x", input_schema=schema))
    assert ("branch" in declared) == (schema != {})
    assert "aside" not in declared
    assert declared.others(["branch", "aside"]) == {"aside"} | (set() if schema else {"branch"})


def test_what_a_nested_object_has_is_not_declared_for_the_whole():
    nested = {"properties": {"deep": BRANCH}, "items": BRANCH, "not": BRANCH, "$defs": {"a": BRANCH}}
    assert declared_by(Definition(name="x", input_schema=nested)).names == {"deep"}


NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.sampled_from(["", "main", "dev", "e\u0301", "x" * 130])
SOME = st.dictionaries(NAMES, VALUES, max_size=3)
ENDS = st.lists(
    st.sampled_from(["*", "a=", "b=", "main", "=", ", ", "?", "dev", "\u00e9", "c=*", "[a-c]=", "x"]),
    max_size=6,
).map("".join)
PATTERNS = st.one_of(
    st.just("box__pushx"),
    ENDS.map("box__pushx({})".format),
    ENDS.map("*{}".format),
    ENDS.map("box:*{}*".format),
)
WHENS = st.dictionaries(
    NAMES, st.one_of(VALUES, st.just({"glob": "m*"}), st.just(["dev", "main"])), max_size=2
)


@settings(max_examples=600, deadline=None)
@given(PATTERNS, WHENS, SOME, SOME, st.sets(NAMES))
def test_adding_undeclared_arguments_never_weakens_a_deny(pattern, when, arguments, added, declared):
    tool = tool_of({"properties": {name: {} for name in declared}, "additionalProperties": True})
    more = {name: value for name, value in added.items() if name not in declared and name not in arguments}
    rules = [make_rule(pattern=pattern, action="deny", when=when)]
    if decide(rules, tool, arguments) == "deny":
        assert decide(rules, tool, arguments | more) == "deny"


def test_a_rule_that_asks_for_the_absence_of_an_argument_is_about_calls_without_it():
    rules = [make_rule(pattern="box__pushx(*)", action="deny", when={"force": None})]
    assert decide(rules, tool_of(BRANCH), {"branch": "main"}) == "deny"
    assert decide(rules, tool_of(BRANCH), {"branch": "main", "force": True}) == "ask"


GLOBS = st.text("ab*?[]!", max_size=8)


@settings(max_examples=800, deadline=None)
@given(GLOBS, st.text("abc", max_size=12), st.integers(1, 9), st.text("ab", max_size=6))
def test_a_long_text_leads_a_glob_where_its_characters_do(pattern, text, times, rest):
    glob, whole = Glob(pattern), text * times + rest
    assert bool(glob.run(whole) & glob.end) == bool(glob.matches(whole))
    split = glob.run(rest, glob.run(text * times))
    assert bool(split & glob.end) == bool(glob.matches(whole))


def test_a_large_undeclared_value_costs_a_rule_that_refuses_little():
    tool = tool_of(BRANCH)
    glob = Glob("box__pushx(*mam*branch=main)")
    before = glob.step
    taken = []
    glob.step = lambda state, character: (taken.append(1), before(state, character))[1]
    glob.run("box__pushx(a=" + "ma" * 1_000_000)
    assert len(taken) < 500
    rules = [make_rule(pattern="box__pushx(*mam*branch=main)", action="deny")]
    assert decide(rules, tool, {"a": "ma" * 100_000, "branch": "main"}) == "deny"


@pytest.mark.parametrize("value", [{"/etc/passwd": 1}, {"a": {"/etc/passwd": None}}, [{"/etc/x": []}]])
def test_a_value_cannot_hide_in_the_name_of_a_member(value):
    for action in ("deny", "ask"):
        rules = [make_rule(pattern="*", action=action, when={"path": {"glob": "/etc/*"}})]
        assert decide(rules, tool_of({}), {"path": value}, "allow") == action
    allows = [make_rule(pattern="*", action="allow", when={"path": {"glob": "/etc/*"}})]
    assert decide(allows, tool_of({}), {"path": value}) == "ask"


READ = {"properties": {"path": {}, "limit": {}}}


@pytest.mark.parametrize(
    ("rule", "effect"),
    [
        ({"pattern": "box__read(path=/srv/*)"}, "ask"),
        ({"pattern": "box__read(path=/srv/*"}, "ask"),
        ({"pattern": "box:read(*path=/srv/*)"}, "ask"),
        ({"pattern": "*path=/srv/*"}, "ask"),
        ({"pattern": "box__read(path=/srv/*, zroot=/etc)"}, "allow"),
        ({"pattern": "box__read(path=/srv/*, z*=/etc)"}, "allow"),
        ({"pattern": "box__read(path=/srv/*)", "extra": frozenset({"zroot"})}, "allow"),
        ({"pattern": "box__read(path=/srv/*)", "extra": frozenset({"zoo"})}, "ask"),
        ({"pattern": "box__read(path=/srv/*)", "when": {"zroot": {"glob": "*"}}}, "allow"),
        ({"pattern": "box__read(path=/srv/*)", "when": {"path": {"glob": "*"}}}, "ask"),
        ({"pattern": "box__read(*)"}, "allow"),
        ({"pattern": "box__*"}, "allow"),
        ({"pattern": "box__*", "when": {"path": {"glob": "/srv/*"}}}, "allow"),
    ],
)
def test_an_allow_that_spells_arguments_covers_what_it_names_and_what_is_declared(rule, effect):
    tool = tool_of({**READ, "additionalProperties": True}, "read")
    rules = [make_rule(action="allow", **rule)]
    assert decide(rules, tool, {"path": "/srv/a", "zroot": "/etc"}) == effect
    if (
        "zroot=" not in rule["pattern"]
        and "zroot" not in rule.get("when", {})
        and "z*" not in rule["pattern"]
    ):
        assert decide(rules, tool, {"limit": 1, "path": "/srv/a"}) == (
            "ask" if rule["pattern"].startswith("box__read(path") else "allow"
        )
        assert decide(rules, tool, {"path": "/srv/a"}) == "allow"


def test_a_question_says_which_argument_kept_a_rule_from_allowing_the_call():
    tool = tool_of(READ, "read")
    policy = Policy([make_rule(pattern="box__read(path=/srv/*)", action="allow")])
    called = {"path": "/srv/a", "zroot": "/etc"}
    near = policy.decide(Subject(tool, called, tool.sign(called), "pi")).near
    assert near == "allow box__read(path=/srv/*) would allow it, but argument zroot is not declared"


@pytest.mark.parametrize(
    ("narrow", "decides"),
    [("box__read(path=/srv/a, zroot=*)", True), ("box__read(path=/srv/a*)", False)],
)
def test_an_allow_that_names_more_arguments_than_a_wider_one_does_decide(narrow, decides):
    rules = [
        make_rule(pattern="box__read(path=/srv/*", action="allow", where="p:1"),
        make_rule(pattern=narrow, action="allow", where="p:2"),
    ]
    assert [finding.where for finding in lint(rules, [], ())] == ([] if decides else ["p:2"])


@pytest.mark.parametrize(
    "tool",
    [
        tool_of(READ, "read"),
        tool_of({"patternProperties": {"^x": {}}}, "read"),
        catalog(yaml_tool("light", "{name}", {"name": arg()})).tools[0],
    ],
)
def test_more_undeclared_arguments_than_anybody_could_read_are_refused(tool):
    many = {f"a{number}": "" for number in range(10_000)}
    with pytest.raises(
        InvalidArgs, match="10000 arguments that the tool does not declare, such as a0; at most 256"
    ):
        tool.validate(many)
    tool.validate(dict(itertools.islice(many.items(), MOST_UNDECLARED)))


def test_many_arguments_that_are_declared_are_taken():
    schema = {"properties": {"path": {}}, "patternProperties": {"^x": {}}}
    assert tool_of(schema, "read").validate({f"x{number}": "" for number in range(1000)}) is None

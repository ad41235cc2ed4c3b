"""permissions.yaml into raw rules."""

from pathlib import Path

import pytest

from agent_gate.config.load import load
from agent_gate.errors import ConfigError
from agent_gate.policy.conditions.callers import ByCallers
from agent_gate.policy.conditions.namespace import InNamespace
from agent_gate.policy.conditions.traits import HasTrait
from agent_gate.policy.conditions.when import WithArguments


@pytest.fixture
def rules(write):
    return lambda text, env=None: load(None, write("p.yaml", text), env or {})


@pytest.mark.parametrize("text", ["", "rules:\n", "rules: []\n", "rules: null\ndefaults:\n"])
def test_absent_null_and_empty_rules_are_fine(rules, text):
    loaded = rules(text)
    assert (loaded.rules, loaded.defaults, loaded.policy_tests) == ((), (), ())


def test_a_rule_has_every_condition(rules):
    loaded = rules("""
rules:
  - pattern: "mail_send(*)"
    action: ask
    description: why
    namespace: Mail Box
    callers: [pi, "coder-*"]
    open_world: true
    when: {to: "a@b", kind: [x, y], size: {min: 1, max: 9}, subject: {glob: "Re: *"}}
    extra: [cc]
    lifetime: 60
    approvers: [ada]
    via: client
""")
    (rule,) = loaded.rules
    assert rule.conditions == {
        "namespace": InNamespace("mail_box"),
        "callers": ByCallers(("pi", "coder-*")),
        "open_world": HasTrait("open_world", True),
        "when": WithArguments(
            {
                "to": "a@b",
                "kind": ["x", "y"],
                "size": {"min": 1, "max": 9},
                "subject": {"glob": "Re: *"},
            }
        ),
    }
    assert (rule.extra, rule.lifetime, rule.approvers, rule.via) == (("cc",), 60.0, ("ada",), "client")
    assert rule.where == "p.yaml:3:5"


def test_a_pattern_of_namespaces_is_kept(rules):
    assert rules("rules: [{namespace: 'Lab*', action: deny}]").rules[0].label() == "deny namespace Lab*"


def test_variables_are_filled_in_rules_too(rules):
    loaded = rules("rules: [{pattern: 'f(${WHO})', action: allow}]", {"WHO": "ada"})
    assert loaded.rules[0].pattern == "f(ada)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "rules:\n  - {pattern: a, action: permit}",
            "p.yaml:2:26: rules[0].action: expected one of allow, ask, deny",
        ),
        ("defaults: [{pattern: a, action: no}]", "p.yaml:1:33: defaults[0].action: expected one of"),
        ("rules: [{pattern: a}]", 'p.yaml:1:9: rules[0]: the key "action" is missing'),
        ("rules: [{action: allow}]", "p.yaml:1:9: rules[0]: names nothing to match"),
        ("rules: [{patern: a, action: ask}]", 'rules[0].patern: unknown key, did you mean "pattern"?'),
        ("rules: {a: b}", "p.yaml:1:8: rules: expected a list, found a mapping"),
        ("rules: [a]", "p.yaml:1:9: rules[0]: expected a mapping, found text"),
        ("rulez: []", 'p.yaml:1:1: rulez: unknown key, did you mean "rules"?'),
        ("rules: [{pattern: a, action: ask, when: {x: {like: 1}}}]", "when.x.like: unknown predicate"),
        (
            "rules: [{pattern: a, action: ask, when: {x: {min: a}}}]",
            "when.x.min: expected a number, found text",
        ),
        ("rules: [{pattern: a, action: allow, callers: []}]", "rules[0].callers: names nobody"),
        ("rules: [{pattern: a, action: allow, when: {x: {}}}]", "when.x: says nothing about the argument"),
        ("rules: [{pattern: a, action: deny, when: {x: []}}]", "when.x: says nothing about the argument"),
        ("policy_tests: [{tool: a}]", 'policy_tests[0]: the key "expect" is missing'),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(rules, text, message):
    with pytest.raises(ConfigError) as caught:
        rules(text)
    assert message in caught.value.message


def test_policy_tests_are_kept(rules):
    loaded = rules("policy_tests: [{tool: f, args: {a: 1}, caller: pi, expect: deny}]")
    (test,) = loaded.policy_tests
    assert (test.tool, test.args, test.caller, test.expect) == ("f", {"a": 1}, "pi", "deny")


def test_the_file_is_watched(rules):
    assert [path.name for path in rules("").files] == ["p.yaml"]
    assert Path(rules("").files[0]).is_absolute()

"""`people` and `groups` of a rule, as permissions.yaml has them."""

import pytest

from agent_gate.errors import ConfigError


@pytest.mark.parametrize("key", ["people", "groups"])
def test_an_empty_list_of_people_is_a_mistake_with_its_place(load_text, key):
    with pytest.raises(ConfigError, match=rf"rules\[0\]\.{key}: names nobody"):
        load_text("{}", permissions__yaml=f"rules: [{{pattern: '*', action: deny, {key}: []}}]")


def rule(load_text, approvers):
    return load_text(
        "{}", permissions__yaml=f"rules: [{{pattern: '*', action: ask, approvers: {approvers}}}]"
    ).rules[0]


def test_approvers_are_names_or_say_how_many_and_who_not(load_text):
    assert rule(load_text, "[anna, ben]").approvers == ("anna", "ben")
    long = rule(load_text, "{names: [anna], own: true, count: 2, not_own: false}")
    assert (long.approvers, long.own, long.count, long.not_own) == (("anna",), True, 2, False)


@pytest.mark.parametrize(
    ("approvers", "why"),
    [
        ("{count: 0}", "must be at least 1"),
        ("{names: [anna], count: 2}", "names fewer people than the 2"),
        ("{nams: [anna]}", "unknown key"),
        ("anna", "expected a list"),
    ],
    ids=["none", "too-few", "unknown", "text"],
)
def test_approvers_that_nobody_could_be_are_refused(load_text, approvers, why):
    with pytest.raises(ConfigError, match=rf"rules\[0\]\.approvers.*{why}"):
        rule(load_text, approvers)


def test_a_client_that_answers_itself_is_not_two_people(load_text):
    text = "rules: [{pattern: '*', action: ask, via: client, approvers: {count: 2}}]"
    with pytest.raises(ConfigError, match="via: client"):
        load_text("{}", permissions__yaml=text)

import fnmatch
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools import HOME_TOOLS, arg, catalog, yaml_tool

from agent_gate.core.catalog import Listing, build
from agent_gate.core.tool import Definition
from agent_gate.core.traits import Traits
from agent_gate.policy import Policy, Subject
from agent_gate.policy.lint import bare, lint
from agent_gate.policy.rule import make_rule

CATALOG = catalog(*HOME_TOOLS)
SERVICE = CATALOG.find("ha_call_service")


def decide(policy, tool, arguments, caller="default"):
    return policy.decide(Subject(tool, arguments, tool.sign(arguments), caller))


PLAIN = Traits()


def upstream(name, traits=PLAIN, key="git", **schema):
    definition = Definition(name=name, traits=traits, input_schema={"type": "object", **schema})
    return build([Listing(key=key, namespace=key, definitions=[definition])]).tools[0]


def test_deny_beats_allow_beats_ask_whatever_their_order():
    rules = [
        make_rule(pattern="ha_*", action="ask"),
        make_rule(pattern="ha_*", action="allow"),
        make_rule(pattern="ha_call_service(lock.*)", action="deny", where="p.yaml:3"),
    ]
    policy = Policy(rules)
    denied = decide(policy, SERVICE, {"domain": "lock", "service": "unlock"})
    assert (denied.effect, denied.where) == ("deny", "p.yaml:3")
    assert decide(policy, SERVICE, {"domain": "light", "service": "turn_on"}).effect == "allow"


def test_defaults_are_read_top_down_and_the_last_word_is_ask():
    policy = Policy(
        [], [make_rule(pattern="ha_get_*", action="allow"), make_rule(pattern="ha_*", action="deny")]
    )
    assert decide(policy, CATALOG.find("ha_get_states"), {}).effect == "allow"
    assert decide(policy, SERVICE, {"domain": "a", "service": "b"}).effect == "deny"
    assert decide(Policy(), SERVICE, {"domain": "a", "service": "b"}).effect == "ask"


def test_patterns_are_case_sensitive_everywhere():
    assert (
        decide(Policy([make_rule(pattern="HA_*", action="allow")]), CATALOG.find("ha_get_states"), {}).effect
        == "ask"
    )


def test_an_undeclared_argument_never_rides_along_on_an_allow_rule():
    arguments = {"domain": "light", "service": "turn_on", "entity_id": "light.a", "area_id": "everything"}
    assert decide(Policy([make_rule(pattern="*", action="allow")]), SERVICE, arguments).effect == "ask"
    assert decide(Policy([], [make_rule(pattern="*", action="allow")]), SERVICE, arguments).effect == "ask"
    assert (
        decide(
            Policy([make_rule(pattern="*", action="allow", extra=frozenset({"area_id"}))]), SERVICE, arguments
        ).effect
        == "allow"
    )


@pytest.mark.parametrize(
    ("rule", "arguments", "near"),
    [
        ({}, {"area_id": "all"}, "allow ha_* would allow it, but argument area_id is not declared"),
        (
            {"when": {"service": "turn_off"}},
            {},
            "allow ha_* would allow it, but argument service does not fit",
        ),
        ({"pattern": "hb_*"}, {"area_id": "all"}, ""),
        ({"extra": frozenset({"area_id"}), "action": "deny"}, {}, ""),
    ],
)
@pytest.mark.parametrize("asking", [[], [make_rule(pattern="*", action="ask")]])
def test_a_question_says_what_kept_a_rule_from_allowing_the_call(rule, arguments, near, asking):
    policy = Policy([make_rule(**{"pattern": "ha_*", "action": "allow", **rule}), *asking])
    decision = decide(policy, SERVICE, {"domain": "light", "service": "turn_on", **arguments})
    assert decision.near == near
    assert decision.effect == ("deny" if rule.get("action") else "ask")


def test_a_fault_inside_the_engine_is_a_deny():
    class Broken(dict):
        def get(self, *_):
            raise RuntimeError("boom")

    policy = Policy([make_rule(pattern="*", action="allow", when={"domain": "x"})])
    assert (
        policy.decide(Subject(SERVICE, Broken(domain="x", service="y"), "ha_call_service(x.y, )", "a")).effect
        == "deny"
    )


def test_rules_can_name_a_namespace_a_caller_and_traits():
    tool = upstream("push", Traits(read_only=True, trusted=True))
    policy = Policy([make_rule(namespace="git", read_only=True, callers=("coder*",), action="allow")])
    assert decide(policy, tool, {}, "coder-1").effect == "allow"
    assert decide(policy, tool, {}, "pi").effect == "ask"
    assert (
        decide(
            policy, upstream("push", Traits(read_only=True, trusted=True), key="other"), {}, "coder"
        ).effect
        == "ask"
    )


@pytest.mark.parametrize(
    ("traits", "rule", "effect"),
    [
        (Traits(read_only=True), make_rule(read_only=True, action="allow"), "ask"),
        (Traits(read_only=True, trusted=True), make_rule(read_only=True, action="allow"), "allow"),
        (Traits(), make_rule(destructive=False, action="allow"), "ask"),
        (Traits(destructive=True), make_rule(destructive=True, action="deny"), "deny"),
        (Traits(read_only=True), make_rule(read_only=False, action="deny"), "deny"),
        (Traits(open_world=True), make_rule(open_world=True, action="deny"), "deny"),
    ],
)
def test_what_a_server_claims_counts_only_where_it_makes_us_careful(traits, rule, effect):
    assert decide(Policy([rule]), upstream("x", traits), {}).effect == effect


@pytest.mark.parametrize(
    ("when", "value", "matches"),
    [
        ({"n": 3}, 3, True),
        ({"n": 3}, "3", False),
        ({"n": [1, 2]}, 2, True),
        ({"n": {"min": 1, "max": 5}}, 4, True),
        ({"n": {"min": 1, "max": 5}}, 6, False),
        ({"n": {"min": 1, "max": 5}}, 1, True),
        ({"n": {"min": 1, "max": 5}}, 5, True),
        ({"n": {"max": 5}}, "4", False),
        ({"n": {"max": 5}}, False, False),
        ({"n": True}, 1, False),
        ({"n": [False]}, 0, False),
        ({"n": {"min": 0}}, True, False),
        ({"n": {"glob": "a*"}}, "abc", True),
        ({"n": {"glob": "a*"}}, 1, False),
        ({"n": {"in": ["x"]}}, "x", True),
        ({"n": None}, None, True),
    ],
)
def test_a_rule_can_look_at_arguments(when, value, matches):
    arguments = {} if value is None else {"n": value}
    assert decide(
        Policy([make_rule(pattern="*", action="allow", when=when)]), upstream("x"), arguments
    ).effect == ("allow" if matches else "ask")


def test_a_call_without_arguments_is_covered_by_a_rule_for_all_arguments():
    assert (
        decide(Policy([make_rule(pattern="git__status(*)", action="deny")]), upstream("status"), {}).effect
        == "deny"
    )


def test_a_tool_with_a_signature_of_its_own_is_matched_as_that_is_written():
    states = CATALOG.find("ha_get_states")
    for pattern, effect in {"ha_get_states(*)": "ask", "ha_get_states": "allow"}.items():
        assert decide(Policy([make_rule(pattern=pattern, action="allow")]), states, {}).effect == effect


def test_what_is_not_worth_offering_is_what_a_deny_rule_covers_and_no_default():
    read, denied = upstream("read"), {"path": "/etc"}
    policy = Policy(
        [make_rule(pattern="*(path=/etc*", action="deny"), make_rule(pattern="git__*", action="allow")]
    )
    assert policy.denies(read, denied, "pi")
    assert not policy.denies(read, {"path": "/srv"}, "pi")
    assert not Policy([], [make_rule(pattern="*", action="deny")]).denies(read, denied, "pi")
    assert not Policy([make_rule(pattern="*", action="ask")]).denies(read, denied, "pi")
    assert not Policy([make_rule(pattern="*", action="deny", callers=("coder",))]).denies(read, denied, "pi")


@pytest.mark.parametrize(
    ("pattern", "hidden"),
    [
        ("git__push", False),
        ("git__push*", True),
        ("git__push(*)", True),
        ("*", True),
        ("git__push(branch=main*", False),
        ("git__p*", True),
    ],
)
def test_a_tool_leaves_the_listing_only_when_every_call_of_it_is_denied(pattern, hidden):
    tool = upstream("push", properties={"branch": {}}, required=["branch"])
    assert Policy([make_rule(pattern=pattern, action="deny")]).hides(tool, "a") is hidden


def test_a_bare_tool_is_hidden_by_its_name():
    assert Policy([make_rule(pattern="ha_get_states", action="deny")]).hides(
        CATALOG.find("ha_get_states"), "a"
    )


def test_an_explanation_lists_every_rule_up_to_the_one_that_decided():
    policy = Policy(
        [
            make_rule(pattern="ha_get_*", action="allow"),
            make_rule(pattern="ha_call_service(lock.*)", action="deny"),
        ],
        [make_rule(pattern="*", action="ask")],
    )
    arguments = {"domain": "light", "service": "turn_on"}
    explained = policy.explain(Subject(SERVICE, arguments, SERVICE.sign(arguments), "a"))
    assert [(c.rule.action, c.matched) for c in explained.considered] == [
        ("deny", False),
        ("allow", False),
        ("ask", True),
    ]
    assert explained.effect == "ask"


def test_lint_names_rules_that_match_nothing_and_rules_that_never_decide():
    rules = [
        make_rule(pattern="ha_call_service(lock.*)", action="deny", where="p:1"),
        make_rule(pattern="ha_call_service(lock.front*)", action="allow", where="p:2"),
        make_rule(pattern="nothing_*", action="allow", where="p:3"),
    ]
    found = {
        finding.where: finding.message
        for finding in lint(
            rules,
            [make_rule(pattern="*", where="p:4"), make_rule(pattern="ha_*", where="p:5")],
            CATALOG.tools,
        )
    }
    assert set(found) == {"p:2", "p:3", "p:5"}
    assert "p:1" in found["p:2"]


@pytest.mark.parametrize(
    ("wide", "narrow", "decides"),
    [
        (
            {"pattern": "ha_*"},
            {"pattern": "ha_call_service(light.*)", "extra": frozenset({"brightness"})},
            True,
        ),
        (
            {"pattern": "ha_*", "extra": frozenset({"brightness", "color"})},
            {"pattern": "ha_call_service(light.*)", "extra": frozenset({"brightness"})},
            False,
        ),
        ({"pattern": "f__read(path=/srv/*"}, {"pattern": "f__read(path=/srv/../etc/hosts)"}, True),
        ({"pattern": "f__read(path=/srv/*"}, {"pattern": "f__read(path=/srv/a)"}, False),
    ],
)
def test_an_allow_that_covers_more_than_a_wider_one_does_decide(wide, narrow, decides):
    rules = [make_rule(action="allow", where="p:1", **wide), make_rule(action="allow", where="p:2", **narrow)]
    assert [finding.where for finding in lint(rules, [], ())] == ([] if decides else ["p:2"])


NAMES = st.sampled_from(["a", "a_b", "b"])
OFTEN = st.sampled_from(["*", "a*", "b*", "a_b*", "*b*", "?(*)", "a(*)", "b(*)", "a_b(*", "*)"])
PATTERNS = OFTEN | st.text("ab_*?(),= ", min_size=1, max_size=8)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.tuples(PATTERNS, st.sampled_from(["allow", "ask", "deny"])), max_size=6),
    st.lists(st.tuples(PATTERNS, st.sampled_from(["allow", "ask", "deny"])), max_size=3),
    NAMES,
    st.text("ab_ ", max_size=4),
)
def test_the_engine_agrees_with_the_meaning_written_down(rules, defaults, name, value):
    tool = catalog(yaml_tool(name, "{v}", {"v": arg()})).tools[0]
    signature = tool.sign({"v": value})

    def oracle():
        for effect in ("deny", "allow", "ask"):
            if any(action == effect and fnmatch.fnmatchcase(signature, pattern) for pattern, action in rules):
                return effect
        return next(
            (action for pattern, action in defaults if fnmatch.fnmatchcase(signature, pattern)), "ask"
        )

    made = Policy(
        [make_rule(pattern=p, action=a) for p, a in rules],
        [make_rule(pattern=p, action=a) for p, a in defaults],
    )
    assert made.decide(Subject(tool, {"v": value}, signature, "x")).effect == oracle()


def test_a_tool_that_got_another_name_meets_the_rules_of_that_name():
    [tool] = catalog(yaml_tool("unlock")).tools
    policy = Policy(
        [make_rule(pattern="open_door", action="deny"), make_rule(pattern="unlock", action="allow")]
    )
    assert policy.decide(Subject(tool, {}, "unlock", "pi")).effect == "allow"
    assert policy.decide(Subject(replace(tool, wire="open_door"), {}, "open_door", "pi")).effect == "deny"


@pytest.mark.parametrize(
    "pattern", ["git:push", "git:push*", "git:push(*)", "git:*", "*:push*", "git:push(*branch=main*)"]
)
def test_a_rule_may_name_a_tool_by_its_namespace_and_name(pattern):
    tool = upstream("push")
    policy = Policy([make_rule(pattern=pattern, action="deny"), make_rule(pattern="*", action="allow")])
    called = {} if pattern == "git:push" else {"branch": "main"}
    assert decide(policy, tool, called).effect == "deny"
    assert decide(policy, upstream("pull"), called).effect == ("deny" if pattern == "git:*" else "allow")
    assert policy.hides(tool, "pi") == (pattern in ("git:push*", "git:push(*)", "git:*", "*:push*"))


@pytest.mark.parametrize("name", ["git-push", "git_push"])
def test_a_rule_on_an_alias_without_the_doubled_prefix_refuses_and_never_allows(name):
    made = catalog(Definition(name=name), key="git")
    tool = made.find("git:push")
    rules = {
        action: make_rule(pattern="git:push(*)", action=action, where="p:1")
        for action in ("deny", "ask", "allow")
    }
    for action, effect in {"deny": "deny", "ask": "ask", "allow": "deny"}.items():
        policy = Policy([rules[action]], [make_rule(pattern="*", action="deny")])
        assert decide(policy, tool, {"branch": "main"}).effect == effect
        assert decide(policy, tool, {}).effect == effect
    assert Policy([rules["deny"]]).hides(tool, "pi")
    assert lint([rules["deny"]], [], made.tools) == []
    assert [finding.where for finding in lint([rules["allow"]], [], made.tools)] == ["p:1"]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", ["/etc/passwd"], ["/tmp", "/etc/x"], {"a": [None, "/etc/x"]}]
)
def test_a_value_cannot_hide_in_a_list_or_an_object(path):
    denies = Policy(
        [
            make_rule(pattern="*", action="deny", when={"path": {"glob": "/etc/*"}}),
            make_rule(pattern="*", action="allow"),
        ]
    )
    assert decide(denies, upstream("read"), {"path": path}).effect == "deny"
    allows = Policy([make_rule(pattern="*", action="allow", when={"path": {"glob": "/tmp*"}})])
    assert decide(allows, upstream("read"), {"path": path}).effect == "ask"
    absent = Policy([make_rule(pattern="*", action="deny", when={"path": None})])
    assert decide(absent, upstream("read"), {"path": path}).effect == "ask"
    assert decide(absent, upstream("read"), {}).effect == "deny"


def test_only_an_allow_rule_overlooks_what_a_signature_cuts():
    [tool] = catalog(Definition(name="run"), key="shell").tools
    arguments = {"command": "x" * 300 + " rm -rf"}
    signature = tool.sign(arguments)
    for action, effect in {"deny": "deny", "ask": "ask", "allow": "deny"}.items():
        for others in ([], [make_rule(pattern="shell__run(other)", action="deny")]):
            policy = Policy(
                [*others, make_rule(pattern="*rm -rf*", action=action)],
                [make_rule(pattern="*", action="deny")],
            )
            assert policy.decide(Subject(tool, arguments, signature, "pi")).effect == effect


@pytest.mark.parametrize(
    "pattern", ["git__push(branch=main)", "git__push(branch=main*", "git:push(branch=main)"]
)
def test_an_argument_that_the_tool_does_not_know_takes_no_call_out_of_a_rule_that_refuses(pattern):
    schema = {"type": "object", "properties": {"branch": {}, "remote": {}}}
    [tool] = catalog(Definition(name="push", input_schema=schema), key="git").tools
    called = {"aside": "x" * 300, "branch": "main"}
    for action, effect in {"deny": "deny", "ask": "ask", "allow": "deny"}.items():
        for others in ([], [make_rule(pattern="git__push(other)", action="deny")]):
            policy = Policy(
                [*others, make_rule(pattern=pattern, action=action)], [make_rule(pattern="*", action="deny")]
            )
            assert decide(policy, tool, called).effect == effect
    policy = Policy([make_rule(pattern=pattern, action="deny")], [make_rule(pattern="*", action="allow")])
    assert decide(policy, tool, {"aside": 1, "branch": "dev"}).effect == "allow"
    for taken in ({}, True, {"type": "string"}):
        free = Definition(name="push", input_schema=schema | {"additionalProperties": taken})
        [tool] = catalog(free, key="git").tools
        assert decide(policy, tool, {"aside": 1, "branch": "main"}).effect == "deny"


def test_a_call_with_nothing_but_unknown_arguments_is_a_bare_one_to_rules_that_refuse():
    [tool] = catalog(
        Definition(name="wipe", input_schema={"type": "object", "properties": {"at": {}}}), key="disk"
    ).tools
    policy = Policy(
        [make_rule(pattern="disk__wipe", action="deny")], [make_rule(pattern="*", action="allow")]
    )
    assert decide(policy, tool, {"aside": 1}).effect == "deny"
    assert decide(policy, tool, {"at": 1}).effect == "allow"


OUT = [
    "/srv/../etc",
    "/srv/..",
    "/srv/a/..\\..\\etc",
    "/srv/%2e%2E/etc",
    "/srv/a%2f..%2fetc",
    "/srv/..?x",
    ["/srv/a", "/srv/../b"],
]


@pytest.mark.parametrize("value", OUT)
@pytest.mark.parametrize(
    "rule",
    [
        make_rule(pattern="files__read(path=*/srv/*)", action="allow"),
        make_rule(pattern="files:read(path=?srv/*", action="allow"),
        make_rule(pattern="files__read(path=/srv/*", action="allow"),
        make_rule(pattern="files__*", action="allow", when={"path": {"glob": "/srv/*"}}),
    ],
)
def test_a_rule_for_a_folder_allows_nothing_that_leads_out_of_it(rule, value):
    [tool] = catalog(Definition(name="read"), key="files").tools
    assert decide(Policy([rule]), tool, {"path": value}).effect == "ask"
    anything = Policy([rule, make_rule(pattern="files__read(*)", action="allow")])
    assert decide(anything, tool, {"path": value}).effect == "allow"
    refuses = Policy([replace(rule, action="deny")], [make_rule(pattern="*", action="deny")])
    assert decide(refuses, tool, {"path": value}).effect == "deny"


@pytest.mark.parametrize("value", ["/srv/a/..b", "/srv/...", "/srv/a..", "/srv/v1..v2/x", "/srv/.hidden/.a"])
def test_dots_that_are_part_of_a_name_lead_nowhere(value):
    [tool] = catalog(Definition(name="read"), key="files").tools
    for rule in (
        make_rule(pattern="files__read(path=/srv/*)", action="allow"),
        make_rule(pattern="files__read*", action="allow", when={"path": {"glob": "/srv/*"}}),
    ):
        assert decide(Policy([rule]), tool, {"path": value}).effect == "allow"
    spelled = Policy([make_rule(pattern="files__read(path=../notes/*)", action="allow")])
    assert decide(spelled, tool, {"path": "../notes/a"}).effect == "allow"


@pytest.mark.parametrize("written", ["caf\u00e9", "cafe\u0301"])
@pytest.mark.parametrize("called", ["caf\u00e9", "cafe\u0301"])
def test_a_letter_has_one_spelling_for_rules_that_refuse(written, called):
    [tool] = catalog(Definition(name="read"), key="files").tools
    for rule in (
        make_rule(pattern=f"files__read(path=*{written}*)", action="deny"),
        make_rule(pattern="*", action="deny", when={"path": {"glob": f"*{written}*"}}),
        make_rule(pattern="*", action="deny", when={"path": [f"/{written}"]}),
    ):
        assert decide(Policy([rule]), tool, {"path": f"/{called}"}).effect == "deny"
        assert decide(Policy([rule]), tool, {"path": {"in": [f"/{called}"]}}).effect == "deny"
    long = {"path": "x" * 300 + called}
    assert decide(Policy([make_rule(pattern=f"*{written}*", action="deny")]), tool, long).effect == "deny"
    allows = Policy([make_rule(pattern=f"files__read(path=/{written})", action="allow")])
    assert decide(allows, tool, {"path": f"/{called}"}).effect == ("allow" if written == called else "ask")


@pytest.mark.parametrize("written", ["caf\u00e9", "cafe\u0301"])
@pytest.mark.parametrize("called", ["caf\u00e9", "cafe\u0301"])
def test_a_letter_has_one_spelling_also_where_a_tool_has_a_signature_of_its_own(written, called):
    policy = Policy([make_rule(pattern=f"ha_call_service({written}.*)", action="deny")])
    assert decide(policy, SERVICE, {"domain": called, "service": "open"}).effect == "deny"


def test_a_long_run_of_accents_costs_a_rule_little():
    [tool] = catalog(Definition(name="read"), key="files").tools
    policy = Policy([make_rule(pattern="*caf\u00e9*", action="deny")])
    assert decide(policy, tool, {"path": "a" + "\u0301\u0323" * 200_000}).effect == "ask"


@pytest.mark.parametrize("before", range(60, 70))
def test_a_letter_has_one_spelling_wherever_it_stands_in_a_text_without_ascii(before):
    [tool] = catalog(Definition(name="read"), key="files").tools
    value = "\u0434" * before + "\u0438\u0306"
    for rule in (
        make_rule(pattern="*\u0439*", action="deny"),
        make_rule(pattern="*", action="deny", when={"path": {"glob": "*\u0439*"}}),
    ):
        assert decide(Policy([rule]), tool, {"path": value}).effect == "deny"


def test_a_value_that_begins_with_a_mark_does_not_hide_its_name_from_a_rule():
    [tool] = catalog(Definition(name="read"), key="files").tools
    policy = Policy([make_rule(pattern="files__read(path=*caf\u00e9)", action="deny")])
    assert decide(policy, tool, {"path": "\u0338cafe\u0301"}).effect == "deny"
    spelled = Policy([make_rule(pattern="files__read(path=\u0338*)", action="deny")])
    assert decide(spelled, tool, {"path": "\u0338cafe\u0301"}).effect == "deny"


@pytest.mark.parametrize("value", [5, 5.0])
def test_one_number_has_one_meaning_in_rules(value):
    [tool] = catalog(Definition(name="set"), key="home").tools
    for rule in (
        make_rule(pattern="home__set(level=5)", action="deny"),
        make_rule(pattern="*", action="deny", when={"level": 5}),
        make_rule(pattern="*", action="deny", when={"level": [4, 5]}),
        make_rule(pattern="home__set(deep=*5*)", action="deny"),
    ):
        arguments = {"deep": {"a": [value]}} if "deep" in rule.pattern else {"level": value}
        assert Policy([rule]).decide(Subject(tool, arguments, tool.sign(arguments), "pi")).effect == "deny"
    assert (
        Policy([make_rule(pattern="*", action="deny", when={"on": 1})])
        .decide(Subject(tool, {"on": True}, tool.sign({"on": True}), "pi"))
        .effect
        == "ask"
    )


@pytest.mark.parametrize("many", [2**53, 10**16, 123456789012345680])
def test_a_large_number_has_one_meaning_too(many):
    [tool] = catalog(Definition(name="set"), key="home").tools
    policy = Policy([make_rule(pattern=f"home__set(level={many})", action="deny")])
    assert decide(policy, tool, {"level": many}).effect == "deny"
    assert decide(policy, tool, {"level": float(many)}).effect == "deny"
    assert decide(policy, tool, {"level": many + 1}).effect == "ask"


@pytest.mark.parametrize("names", [("get_item", "get-item"), ("x" * 60,)])
def test_a_rule_on_a_name_that_was_cut_or_made_unique_still_refuses_and_never_allows(names):
    tools = build(
        [Listing(key="s", namespace="s", definitions=[Definition(name=name) for name in names])]
    ).tools
    wanted = f"s__{names[0]}"
    for tool in tools:
        assert tool.wire != wanted
        for called in ({}, {"n": 1}):
            for action, effect in {"deny": "deny", "ask": "ask", "allow": "deny"}.items():
                policy = Policy(
                    [
                        make_rule(pattern=wanted, action=action),
                        make_rule(pattern=f"{wanted}(*)", action=action),
                    ],
                    [make_rule(pattern="*", action="deny")],
                )
                assert decide(policy, tool, called).effect == effect
        assert Policy([make_rule(pattern=f"{wanted}(*)", action="deny")]).hides(tool, "pi")


@pytest.mark.parametrize("arguments", [{}, {"remote": "origin"}])
def test_what_lint_proposes_instead_of_a_bare_name_is_for_every_call_of_that_tool_alone(arguments):
    push, force = catalog(Definition(name="push"), Definition(name="push_force"), key="git").tools
    for name in ("git__push", "git:push"):
        [finding] = bare([make_rule(pattern=name, action="allow")], ())
        proposed = finding.message.partition("write ")[2].partition(" for every call")[0]
        policy = Policy([make_rule(pattern=proposed, action="allow")])
        assert decide(policy, push, arguments).effect == "allow"
        assert decide(policy, force, arguments).effect == "ask"

"""Rules about whom an agent works for: `people` and `groups`."""

from tests.issuer import AUDIENCE, TokenIssuer
from tests.surfaces.admin.admin_gate import gate
from tests.tools import catalog, yaml_tool

from agent_gate.policy import Policy, Subject
from agent_gate.policy.rule import make_rule

HOME = catalog(yaml_tool("ha_get_states"))
SRE = frozenset({"sre", "dev"})


def decided(policy, person="", groups=frozenset()):
    tool = HOME.find("ha_get_states")
    return policy.decide(Subject(tool, {}, tool.sign({}), "pi", None, person, groups)).effect


def test_a_rule_about_people_holds_for_their_agents_alone():
    policy = Policy([make_rule(pattern="*", action="allow", people=("anna", "*@example.com"))])
    assert decided(policy, "anna") == "allow"
    assert decided(policy, "bea@example.com") == "allow"
    assert decided(policy, "carl") == "ask"
    assert decided(policy) == "ask"


def test_a_rule_about_groups_holds_for_their_members_alone():
    policy = Policy(
        [
            make_rule(pattern="*", action="deny", groups=("guest-*",)),
            make_rule(pattern="*", action="allow", groups=("sre",)),
        ]
    )
    assert decided(policy, "anna", SRE) == "allow"
    assert decided(policy, "anna", SRE | {"guest-1"}) == "deny"
    assert decided(policy, "anna") == "ask"


def test_one_agent_is_decided_on_by_the_groups_it_has_now():
    """The same name with other groups, as its next token may say, meets other rules."""
    policy = Policy([make_rule(pattern="*", action="allow", groups=("sre",))])
    assert [decided(policy, "anna", groups) for groups in (SRE, frozenset(), SRE)] == [
        "allow",
        "ask",
        "allow",
    ]


def test_what_is_denied_to_people_altogether_leaves_their_lists_alone():
    policy, tool = (
        Policy([make_rule(pattern="*", action="deny", people=("carl",))]),
        HOME.find("ha_get_states"),
    )
    assert policy.hides(tool, "pi", "carl", frozenset())
    assert not policy.hides(tool, "pi", "anna", frozenset())
    assert not policy.hides(tool, "pi")


def test_an_explanation_says_whom_the_caller_works_for():
    policy, tool = (
        Policy([make_rule(pattern="*", action="allow", people=("anna",), groups=("sre",))]),
        HOME.find("ha_get_states"),
    )
    told = policy.explain(Subject(tool, {}, tool.sign({}), "pi", None, "carl", frozenset()))
    assert told.considered[0].why == "the caller works for carl"


PERMISSIONS = """\
rules:
  - {pattern: "light_set*", action: allow, groups: [sre]}
  - {pattern: "light_get*", action: allow, people: [anna]}
policy_tests:
  - {tool: light_set, args: {room: hall}, caller: pi, expect: allow}
  - {tool: light_set, args: {room: hall}, caller: pi, person: bob, groups: [guests], expect: ask}
"""


def test_the_record_has_both_names_and_tokens_bring_their_groups(tmp_path):
    people = "people: {anna: {groups: [sre]}}\n"
    with TokenIssuer() as issuer:
        jwt = f"auth: {{jwt: [{{issuer: '{issuer.url}', audience: '{AUDIENCE}', jwks_url: '{issuer.jwks_url}', name: ci, person: email, groups: groups}}]}}\n"
        with gate(tmp_path, people + jwt, PERMISSIONS.partition("policy_tests")[0]) as gateway:

            def status(**claims):
                return gateway.call(
                    "light_set", {"room": "hall"}, token=issuer.token(**claims), wait=0
                ).status

            assert status(sub="a", email="carl@example.com", groups=["sre"]) == 200
            assert status(sub="a", email="carl@example.com", groups=["other"]) == 202
            [row] = [
                row
                for row in gateway.admin.get("/api/calls?limit=50")["rows"]
                if row["state"] == "dispatching"
            ]
            assert (row["caller"], row["body"]["person"]) == ("ci/a", "carl@example.com")
            config = gateway.folder / "config.yaml"
            config.write_text(config.read_text().replace("pi: {token", "pi: {person: anna, token"))
            (gateway.folder / "permissions.yaml").write_text(PERMISSIONS)
            gateway.admin.request("POST", "/api/reload", {})
            assert gateway.call("light_set", {"room": "hall"}, wait=0).status == 200
            assert gateway.call("light_get", {"room": "hall"}, wait=0).status == 200

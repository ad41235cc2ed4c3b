"""`auth.jwt` of config.yaml: which issuers may be named, and what is refused with its place."""

import pytest

from agent_gate.errors import ConfigError

GOOD = "{issuer: 'https://ci.example', audience: gate}"


def test_an_issuer_is_known_by_its_host_where_it_has_no_name(load_text):
    [issuer] = load_text(f"auth: {{jwt: [{GOOD}]}}").settings.trusted_issuers()
    assert (issuer.prefix, issuer.likeness.calls_per_minute) == ("ci.example", 60)


def test_the_general_limits_and_folded_namespaces_hold_for_its_agents(load_text):
    text = "rate_limit: {max_requests_per_minute: 7}\nauth: {jwt: [{issuer: 'https://a.example', audience: g, namespaces: [Git_Hub]}]}"
    [issuer] = load_text(text).settings.trusted_issuers()
    assert issuer.likeness.calls_per_minute == 7
    assert issuer.likeness.namespaces == {"git-hub"} or issuer.likeness.namespaces == {"git_hub"}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("{issuer: 'https://ci.example'}", 'the key "audience" is missing'),
        ("{issuer: 'https://ci.example', audience: ''}", r"audience: is empty"),
        ("{issuer: ci.example, audience: gate}", r"issuer: is no address"),
        ("{issuer: 'http://ci.example', audience: gate}", r"issuer: is plain HTTP"),
        ("{issuer: 'https://a.example', audience: g, jwks_url: 'http://a.example/k'}", r"jwks_url: is plain HTTP"),
        ("{issuer: 'spiffe://example.org', audience: gate}", r"jwks_url: is missing"),
        ("{issuer: 'https://a.example', audience: g, name: 'a/b'}", r"name: has 1 to 64"),
        ("{issuer: 'https://a.example', audience: g, caller: ''}", r"caller: is empty"),
        ("{issuer: 'https://a.example', audience: g, leeway: 301}", r"leeway: must be at most 300"),
    ],
    ids=[
        "no-audience",
        "empty-audience",
        "no-address",
        "plain-issuer",
        "plain-keys",
        "domain-without-keys",
        "slash",
        "no-claim",
        "leeway",
    ],
)  # fmt: skip
def test_what_no_token_could_pass_or_anybody_could_is_refused(load_text, entry, why):
    with pytest.raises(ConfigError, match=rf"config\.yaml:3:.*auth\.jwt\[0\].*{why}"):
        load_text(f"auth:\n  jwt:\n    - {entry}")


def test_two_issuers_of_one_name_are_refused(load_text):
    with pytest.raises(ConfigError, match=r"another issuer is called .ci\.example. too"):
        load_text(f"auth: {{jwt: [{GOOD}, {GOOD}]}}")


def test_an_agent_that_could_be_an_issuers_is_refused(load_text):
    with pytest.raises(ConfigError, match=r"the agent ci\.example/x could be one of this issuer's"):
        load_text(f"agents: {{ci.example/x: {{token: 0123456789abcdef0}}}}\nauth: {{jwt: [{GOOD}]}}")

"""`auth:` of config.yaml: what it takes, and which addresses it refuses, with their place."""

import pytest

from agent_gate.errors import ConfigError


def test_nobody_signs_in_unless_the_file_says_so(load_text):
    assert load_text("{}").settings.auth.sign_in is False


def test_a_sign_in_on_this_machine_needs_no_address(load_text):
    auth = load_text("auth: {sign_in: true}").settings.auth
    assert (auth.sign_in, auth.public_url) == (True, None)


def test_a_gateway_that_others_reach_says_under_which_address(load_text):
    with pytest.raises(ConfigError, match=r"config\.yaml:2:7: auth\.public_url: is missing"):
        load_text("gateway: {host: 0.0.0.0}\nauth: {sign_in: true}")
    said = load_text("gateway: {host: 0.0.0.0}\nauth: {sign_in: true, public_url: https://gate.example.com}")
    assert said.settings.auth.public_url == "https://gate.example.com"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("gate.example.com", "is no address"),
        ("https://", "is no address"),
        ("https://user@gate.example.com", "is no address"),
        ("https://gate.example.com/mcp", "has a path"),
        ("https://gate.example.com/?a=1", "has a path"),
        ("http://gate.example.com", "is plain HTTP"),
        ("ftp://gate.example.com", "is no address"),
        ("https://gate.example.com:port", "is no address"),
    ],
)
def test_an_address_that_clients_cannot_use_is_refused_with_its_place(load_text, url, why):
    with pytest.raises(ConfigError, match=rf"config\.yaml:2:15: auth\.public_url: .*{why}"):
        load_text(f"auth:\n  public_url: {url}")


def test_plain_http_is_for_this_machine_alone(load_text):
    assert load_text("auth: {public_url: 'http://127.0.0.1:8443'}").settings.auth.public_url

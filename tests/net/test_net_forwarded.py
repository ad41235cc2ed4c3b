"""Behind a reverse proxy limits hold for each address that it names, and nobody chooses one of their own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gateway import running

from agent_gate.config.load import load
from agent_gate.errors import ConfigError
from agent_gate.net.forwarded import Proxies
from agent_gate.net.http import Request

PROXIES = ("10.0.0.0/24", "fd00::1")


@pytest.mark.parametrize(
    ("peer", "named", "origin"),
    [
        ("10.0.0.1", "192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", "198.51.100.9, 192.0.2.7", "192.0.2.7"),
        ("10.0.0.1", "192.0.2.7, 10.0.0.2", "192.0.2.7"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("fd00::1", "2001:db8::5", "2001:db8::5"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "192.0.2.7, unknown", "10.0.0.1"),
        ("10.0.0.1", "192.0.2.7:1234", "10.0.0.1"),
        ("10.0.1.1", "192.0.2.7", "10.0.1.1"),
        ("", "192.0.2.7", ""),
    ],
)
def test_the_nearest_address_that_is_no_proxys_counts(peer, named, origin):
    request = Request("GET", b"/", {b"x-forwarded-for": named.encode()}, peer=peer)
    assert Proxies(PROXIES).origin(request) == origin


@given(st.binary(max_size=200))
def test_who_is_no_proxy_never_changes_its_address(named):
    request = Request("GET", b"/", {b"x-forwarded-for": named}, peer="192.0.2.1")
    assert Proxies(PROXIES).origin(request) == "192.0.2.1"


def guess(gateway, address):
    return gateway.request("GET", "/api/tools", token="wrong", headers={"X-Forwarded-For": address}).status


def test_who_guesses_tokens_behind_a_proxy_slows_nobody_else_behind_it(tmp_path):
    files = {"config.yaml": "agents: {pi: {token: a-token-of-the-test-0123456789}}\n"}
    files["config.yaml"] += "gateway: {port: 0, proxies: [127.0.0.1]}\n"
    with running(tmp_path, files, "--insecure") as gateway:
        guesses = [guess(gateway, "192.0.2.1") for _ in range(11)]
        assert guesses[-1] == 429
        assert guess(gateway, "192.0.2.2") == 401


def test_without_a_proxy_nobody_escapes_by_naming_addresses(tmp_path):
    files = {"config.yaml": "agents: {pi: {token: a-token-of-the-test-0123456789}}\ngateway: {port: 0}\n"}
    with running(tmp_path, files, "--insecure") as gateway:
        assert [guess(gateway, f"192.0.2.{n}") for n in range(11)][-1] == 429


def test_a_proxy_that_is_no_address_has_its_line(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("gateway:\n  proxies:\n    - 10.0.0.0/24\n    - proxy.example\n")
    with pytest.raises(
        ConfigError, match=r"config.yaml:4:7: gateway.proxies: expected an address or a network"
    ):
        load(config, None)

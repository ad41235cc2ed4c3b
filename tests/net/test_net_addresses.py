"""Public addresses pass; private ones do not, in any disguise."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gate.net import addresses
from agent_gate.net.addresses import (
    PrivateAddress,
    check_all,
    check_public,
    is_here,
    is_loopback,
    is_public,
    resolve_public,
)

PRIVATE = [
    "127.0.0.1", "127.255.255.255", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254",
    "100.64.0.1", "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1",
    "::ffff:0:7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:a9fe:a9fe::", "2001::1", "2001:db8::1",
    "3fff::1", "fc00::1", "fd00::1", "fe80::1", "fe80::1%eth0", "2606:4700::1%1", "fec0::1", "ff02::1", "5f00::1",
    "100::1",
]  # fmt: skip
DISGUISED = ["0x7f.1", "2130706433", "0177.0.0.1", "①②⑦.⓪.⓪.①", "127.1", "0", "localhost"]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_or_special_address_is_refused(address: str) -> None:
    with pytest.raises(PrivateAddress):
        check_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::1"]
)
def test_a_public_address_passes(address: str) -> None:
    assert str(check_public(address)) == address


@pytest.mark.parametrize("text", DISGUISED)
def test_what_is_not_a_plain_address_is_refused_as_a_literal(text: str) -> None:
    with pytest.raises(PrivateAddress):
        check_public(text)


@pytest.mark.parametrize("host", DISGUISED)
async def test_a_name_that_resolves_to_this_machine_is_refused(host: str) -> None:
    with pytest.raises((PrivateAddress, socket.gaierror, UnicodeError)):
        await resolve_public(host, 80)


@given(st.ip_addresses())
def test_nothing_that_the_standard_library_calls_private_is_public(address: addresses.IPAddress) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert not is_public(address)


def test_one_private_address_among_public_ones_refuses_the_name() -> None:
    assert check_all(["1.1.1.1", "1.1.1.1", "2606:4700::1111"]) == ["1.1.1.1", "2606:4700::1111"]
    with pytest.raises(PrivateAddress):
        check_all(["1.1.1.1", "10.0.0.1"])


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_what_is_sent_to_loopback_stays_on_this_machine(host: str) -> None:
    assert is_loopback(host)
    assert is_here(host)


@pytest.mark.parametrize("host", ["gate.localhost", "Gate.LOCALHOST"])
def test_a_name_below_localhost_is_this_machine_to_a_browser_alone(host: str) -> None:
    assert is_here(host)
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "0.0.0.0",
        "192.168.0.1",
        "example.com",
        "localhost.example.com",
        "notlocalhost",
        "127.1",
        "0x7f.1",
        "::",
    ],
)
def test_other_names_and_addresses_lead_elsewhere(host: str) -> None:
    assert not is_loopback(host)
    assert not is_here(host)

"""Addresses that a server, not the operator, has named must be public, whatever they are disguised as.

What `ipaddress` calls global is not enough: it lets translated, tunnelled and embedded forms of private
addresses through. So IPv6 is refused outside the space given out to networks, and inside it wherever an
address carries another one.
"""

import asyncio
import socket
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from agent_gate.errors import Forbidden

IPAddress = IPv4Address | IPv6Address

SPECIAL_V4 = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
PUBLIC_V6 = ip_network("2000::/3")
SPECIAL_V6 = tuple(
    ip_network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)


class PrivateAddress(Forbidden):
    """A server pointed at an address that is not public."""


def is_public(address: IPAddress) -> bool:
    """Whether the address is plain public unicast, with nothing hidden inside."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in SPECIAL_V4)
    if address.scope_id is not None or address not in PUBLIC_V6:
        return False
    return not any(address in network for network in SPECIAL_V6)


def is_loopback(host: str) -> bool:
    """Whether what is sent to `host` stays on this machine, whoever looks the name up."""
    name = host.strip("[]").lower()
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def is_here(host: str) -> bool:
    """Whether a browser finds `host` on this machine: names below `localhost` too, which a resolver may not know."""
    return is_loopback(host) or host.lower().endswith(".localhost")


def network_of(address: str) -> str:
    """Whose address this is, where limits hold for each: with IPv6 one customer has a whole /64."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((int(parsed), 64), strict=False))


def check_public(address: str) -> IPAddress:
    """Parse one literal address strictly (`0x7f.1` is not one) and refuse it unless it is public."""
    try:
        parsed = ip_address(address)
    except ValueError:
        raise PrivateAddress("this is not an IP address in its plain form") from None
    if not is_public(parsed):
        raise PrivateAddress(
            f"{parsed} is not a public address; a server may only name public ones. "
            "If this host is meant, name it in the configuration yourself"
        )
    return parsed


def check_all(addresses: Iterable[str]) -> list[str]:
    """The addresses once each; one that is not public refuses all of them."""
    distinct = list(dict.fromkeys(addresses))
    for address in distinct:
        check_public(address)
    return distinct


async def resolve_public(host: str, port: int) -> list[str]:
    """Every address of a host, all of them public; connect to these and to nothing resolved later."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return check_all(str(item[4][0]) for item in found)


class PrivateHosts:
    """The hosts and networks that the operator named as an exception: `nas.local`, `10.0.0.0/8`, `127.0.0.1:8125`."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._hosts, self._networks = set[str](), []
        for entry in entries:
            try:
                self._networks.append(ip_network(entry, strict=False))
            except ValueError:
                self._hosts.add(entry.lower())

    def allows(self, host: str, address: str, port: int) -> bool:
        """Whether this address may be reached under this name; an entry with a port allows that port alone."""
        named = {host.lower(), f"{host.lower()}:{port}"}
        return bool(named & self._hosts) or any(ip_address(address) in each for each in self._networks)

    async def resolve(self, host: str, port: int) -> list[str]:
        """Every address of a host; one that is neither public nor named refuses all of them."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
        check_all(address for address in addresses if not self.allows(host, address, port))
        return addresses

"""Who stands behind a reverse proxy: limits for each address hold for them, and not for all of them together."""

from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network
from typing import TypeVar

from agent_gate.net.http import Request

FORWARDED = b"x-forwarded-for"
MOST_HOPS = 16
Handling = TypeVar("Handling")


class Proxies:
    """The addresses of proxies that the operator named, whose word about who they ask for counts."""

    def __init__(self, entries: Sequence[str]) -> None:
        self._networks = [ip_network(entry) for entry in entries]

    def trusts(self, address: str) -> bool:
        return is_address(address) and any(ip_address(address) in network for network in self._networks)

    def tell_apart(self, handle: Callable[[Request], Handling]) -> Callable[[Request], Handling]:
        """The handler, given requests with the address of who asked; as it is where there are no proxies."""
        if not self._networks:
            return handle

        def told_apart(request: Request) -> Handling:
            request.peer = self.origin(request)
            return handle(request)

        return told_apart

    def origin(self, request: Request) -> str:
        """The nearest address that is no proxy's: each proxy added whom it heard, and what is further may be made up."""
        named = (request.header(FORWARDED) or b"").decode("latin-1").split(",")[-MOST_HOPS:]
        nearest = request.peer
        while named and self.trusts(nearest):
            told = named.pop().strip()
            if not is_address(told):
                break
            nearest = told
        return nearest


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True

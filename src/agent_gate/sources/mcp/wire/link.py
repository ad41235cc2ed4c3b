"""`ServerLink`: what every transport to a server offers, so that a session need not know which one it has.

A transport carries requests of one server. It knows framing, sessions and streams, and nothing of tools or callers;
whatever the server says while a request runs goes to that request's `Talk`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from agent_gate.core.tool import Json
from agent_gate.mcp.errors import INVALID_REQUEST, RpcError
from agent_gate.mcp.messages import Message, encode, error_response, response
from agent_gate.mcp.names import PING
from agent_gate.mcp.revisions import Revision
from agent_gate.sources.mcp.wire.frames import params_of
from agent_gate.sources.mcp.wire.order import Order, Talk
from agent_gate.sources.mcp.wire.problems import StaleSession

UNOWNED = (
    "is refused: it belongs to no single call in flight. Make the call again when no other runs on this server; "
    "with `isolation: caller` in the server's entry, the calls of others do not count"
)
Notice = Callable[[str, Mapping[str, Json]], None]
"""Hears the notifications that belong to no request: list changes, updated resources."""

Renew = Callable[[StaleSession, float], Awaitable[None]]
"""Makes a forgotten session known again, before a deadline."""


class ServerLink(Protocol):
    """One connection to a server. `lost` is done, with the reason, when it can carry no more requests.

    `revision` is the one its requests are sent in; None before a handshake.
    """

    lost: "asyncio.Future[str]"
    notice: Notice
    revision: Revision | None
    renew: "Renew | None"

    @property
    def in_flight(self) -> int:
        """How many requests have no answer yet."""
        ...

    @property
    def parks(self) -> bool:
        """Whether `Order.park` is used whenever the server asks something; false where a question can come
        by a way that nobody who waits for a reply would notice."""
        ...

    async def request(self, order: Order) -> bytes:
        """Send once and return the raw result; raises `RpcError`, `Broken`, `StaleSession`, `Throttled`, `TimeoutError`.

        A request that the server refused to look at, because it had forgotten the session, is sent again after `renew`.
        """
        ...

    async def notify(self, method: str, params: Mapping[str, Json] | None = None) -> None: ...

    async def close(self) -> None: ...


def ignore(method: str, params: Mapping[str, Json]) -> None:
    del method, params


async def reply_to(message: Message, talk: Talk | None) -> bytes:
    """The encoded reply to a server's own request: a ping is ours to answer, the rest is the caller's."""
    number = bytes(message.id)
    if message.method == PING:
        return response(number, b"{}")
    try:
        if talk is None:
            raise RpcError(INVALID_REQUEST, f"{message.method} {UNOWNED}")
        return response(number, encode(await talk.ask(message.method, params_of(message))))
    except RpcError as error:
        return error_response(number, error)

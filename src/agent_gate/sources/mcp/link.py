"""What every transport offers (`Link`) and what it is handed (`Order`, `Talk`).

A transport carries requests of one server. It knows framing, sessions and streams, and nothing of tools,
callers or eras' bridging; whatever the server says while a request runs goes to that request's `Talk`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

import msgspec

from agent_gate.core.tool import Json
from agent_gate.sources.mcp.wire import (
    INVALID_REQUEST,
    Message,
    RpcError,
    StaleSession,
    encode_error,
    encode_result,
    params_of,
)

UNOWNED = (
    "is refused: it belongs to no single call in flight. Make the call again when no other runs on this server; "
    "with `isolation: caller` in the server's entry, the calls of others do not count"
)
Notice = Callable[[str, Mapping[str, Json]], None]
"""Hears the notifications that belong to no request: list changes, updated resources."""


Renew = Callable[[StaleSession, float], Awaitable[None]]
"""Makes a forgotten session known again, before a deadline."""


Park = Callable[["Order", Coroutine[Any, Any, bytes]], Awaitable[bytes]]


class Talk(Protocol):
    """The way back to whoever a request was sent for."""

    async def notify(self, method: str, params: Mapping[str, Json]) -> None: ...

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        """Put a server's question to the caller and return its result; `RpcError` where that is not possible."""
        ...


class Silent:
    """A caller that can be told nothing and asked nothing."""

    async def notify(self, method: str, params: Mapping[str, Json]) -> None:
        del method, params

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        del params
        raise RpcError(
            INVALID_REQUEST, f"{method} cannot be answered: this caller's connection carries no questions"
        )


SILENT = Silent()


class Order(msgspec.Struct, kw_only=True):
    """One request to send before `deadline` (monotonic).

    `talk` None marks a request of our own. `progress` is the caller's progress token; the wire carries
    the request's number instead, because two callers may choose the same token. `questions` are the tasks
    that put the server's questions to the caller. `park` runs what is left of a request whose server speaks
    before it answers; without it that is waited for.
    """

    method: str
    params: dict[str, Json]
    deadline: float
    talk: Talk | None = None
    progress: Json = None
    headers: Mapping[str, str] | None = None
    idempotent: bool = False
    questions: list["asyncio.Task[None]"] = msgspec.field(default_factory=list)
    park: "Park | None" = None

    def asks(self, question: "asyncio.Task[None]") -> None:
        """Keep a question until it is answered."""
        self.questions.append(question)
        question.add_done_callback(self.answered)

    def answered(self, question: "asyncio.Task[None]") -> None:
        if question in self.questions:
            self.questions.remove(question)

    def end(self) -> None:
        """Nobody waits for it any more, so nobody is asked anything for it."""
        for question in self.questions:
            question.cancel()
        self.questions.clear()

    def numbered(self, number: int) -> dict[str, Json]:
        """The parameters as sent under `number`."""
        if self.progress is not None:
            self.params["_meta"] = {**self.params.get("_meta", {}), "progressToken": number}
        return self.params

    def told(self, params: dict[str, Json]) -> dict[str, Json]:
        """A progress notification's parameters as the caller expects them."""
        return {**params, "progressToken": self.progress}


class Link(Protocol):
    """One connection to a server. `lost` is done, with the reason, when it can carry no more requests.

    `era` is the revision its requests are sent in; empty before a handshake.
    """

    lost: "asyncio.Future[str]"
    notice: Notice
    era: str
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
    if message.method == "ping":
        return encode_result(message.id, {})
    try:
        if talk is None:
            raise RpcError(INVALID_REQUEST, f"{message.method} {UNOWNED}")
        return encode_result(message.id, await talk.ask(message.method, params_of(message)))
    except RpcError as error:
        return encode_error(message.id, error)

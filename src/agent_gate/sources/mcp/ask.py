"""`Ask`: one request of a caller on its way upstream, and the two ways back to that caller."""

import logging
from collections.abc import Mapping

import msgspec

from agent_gate.core.ports import Conversation
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError
from agent_gate.mcp.names import INPUT_REQUIRED
from agent_gate.sources.mcp.link import SILENT, Order, Talk
from agent_gate.sources.mcp.wire import (
    INVALID_REQUEST,
    META,
    META_LOG_LEVEL,
    METHOD_NOT_FOUND,
    RpcError,
)

log = logging.getLogger("agent_gate.sources.mcp")

INPUTS = ("inputResponses", "requestState")
OURS = frozenset({*INPUTS, "progressToken"})
NEEDED = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
NOTHING: Mapping[str, Json] = {}


class Ask(msgspec.Struct, kw_only=True):
    """A caller's request. `meta` is the request's `_meta`, with its `inputResponses` and `requestState`.

    `shared` asks for the session that the server's lists and notices come from.
    """

    method: str
    params: Mapping[str, Json]
    deadline: float
    caller: str = ""
    conversation: Conversation | None = None
    meta: Mapping[str, Json] = msgspec.field(default_factory=dict)
    headers: Mapping[str, str] | None = None
    idempotent: bool = False
    shared: bool = False

    @property
    def modern(self) -> bool:
        return self.conversation is not None and self.conversation.comes_back

    @property
    def capabilities(self) -> Mapping[str, Json]:
        return NOTHING if self.conversation is None else self.conversation.capabilities

    @property
    def can_be_asked(self) -> bool:
        return not self.capabilities.keys().isdisjoint(NEEDED.values())

    def takes(self, result_type: str) -> bool:
        """Whether the caller knows what to do with a result that has no content: a question, or what an extension has."""
        return self.modern and (result_type == INPUT_REQUIRED or bool(self.capabilities.get("extensions")))

    def inputs(self) -> dict[str, Json]:
        """The answers of an earlier round, as the caller sent them."""
        return {name: self.meta[name] for name in INPUTS if name in self.meta}

    def order(self, talk: Talk | None, inputs: Mapping[str, Json], log_level: str = "") -> Order:
        """This request as it goes upstream: the caller's `_meta` without what speaks for its own connection."""
        params = {**self.params, **inputs}
        if log_level or not self.meta.keys() <= OURS:
            passed = {n: v for n, v in self.meta.items() if n not in OURS and not n.startswith(META)}
            params["_meta"] = {**passed, META_LOG_LEVEL: log_level} if log_level else passed
        return Order(
            method=self.method,
            params=params,
            deadline=self.deadline,
            talk=talk or SILENT,
            progress=self.meta.get("progressToken"),
            headers=self.headers,
            idempotent=self.idempotent,
        )


class Direct:
    """Talks to a caller whose connection carries questions while its request runs."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation

    async def notify(self, method: str, params: Mapping[str, Json]) -> None:
        await tell(self.conversation, method, params)

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        check_askable(method, self.conversation.capabilities)
        try:
            return await self.conversation.request(method, params)
        except GatewayError as error:
            raise RpcError(INVALID_REQUEST, error.message) from None
        except (TimeoutError, ConnectionError):
            raise RpcError(INVALID_REQUEST, "the caller's client did not answer") from None


async def tell(conversation: Conversation, method: str, params: Mapping[str, Json]) -> None:
    """Pass on a note; a caller that is gone misses it, and the call goes on."""
    try:
        await conversation.notify(method, params)
    except (GatewayError, TimeoutError, ConnectionError) as error:
        log.debug("a note did not reach its caller: %s", error)


def check_askable(method: str, capabilities: Mapping[str, Json]) -> None:
    """A question goes only to a client that said it can answer it."""
    if NEEDED.get(method) not in capabilities:
        raise RpcError(METHOD_NOT_FOUND, f"the caller's client does not answer {method:.64}")

"""The ways back to a caller whose connection carries notes and questions while its request runs."""

import logging
from collections.abc import Mapping

import msgspec

from agent_gate.core.ports import Conversation
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError
from agent_gate.mcp.errors import INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from agent_gate.sources.mcp.wire.order import NEEDED, SILENT, Talk

log = logging.getLogger("agent_gate.sources.mcp")


class Direct(msgspec.Struct, eq=False):
    """Talks to a caller whose connection carries questions while its request runs."""

    conversation: Conversation

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


def talk_with(conversation: Conversation | None) -> Talk:
    return Direct(conversation) if conversation is not None else SILENT


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

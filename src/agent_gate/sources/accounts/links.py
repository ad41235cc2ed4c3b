"""The link of a sign-in, shown by the client of the agent that asked for it."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_gate.core.call import Result
from agent_gate.core.ports import Conversation
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError
from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.links import link_question, opens_links, unfinished
from agent_gate.mcp.names import ELICIT
from agent_gate.mcp.revisions import BY_NAME

log = logging.getLogger("agent_gate.vault")
SHOWN = "the link was shown"


def has_shown(meta: Mapping[str, Json]) -> bool:
    """Whether the client comes back from a link that it was given for this call."""
    return meta.get("requestState") == SHOWN


async def show_link(conversation: Conversation | None, source: str, told: Mapping[str, Any]) -> Result | None:
    """Put the link before the client's user; None where this client opens none, so that the agent passes it on."""
    revision = BY_NAME.get(conversation.protocol) if conversation is not None else None
    if conversation is None or revision is None or not opens_links(conversation.capabilities):
        return None
    url, message = str(told["auth_url"]), f"Sign in to {source}"
    if conversation.comes_back:
        return Result(unfinished(url, message, revision, SHOWN), "mcp", unfinished=True)
    try:
        said = await conversation.request(ELICIT, link_question(url, message, revision))
    except (GatewayError, RpcError) as error:
        log.debug("The link of a sign-in was not shown: %s", error)
        return None
    action = said.get("action") if isinstance(said, dict) else None
    return Result(msgspec.json.encode({**told, "user_said": str(action or "nothing")}))

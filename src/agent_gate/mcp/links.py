"""A link that a client's user should open, in the protocol's words: elicitation by URL, of both eras."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from agent_gate.mcp.errors import RpcError
from agent_gate.mcp.messages import encode
from agent_gate.mcp.names import ELICIT, INPUT_REQUIRED
from agent_gate.mcp.revisions import Revision

URL_NEEDED = -32042
SIGN_IN = "agent-gate/sign-in"
"""Under which a link stands among the questions of an unfinished result."""


def opens_links(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client that declares this shows links to its user."""
    offered = capabilities.get("elicitation")
    return isinstance(offered, dict) and "url" in offered


def link_question(url: str, message: str, revision: Revision) -> dict[str, Any]:
    """The parameters of `elicitation/create`. Where clients are asked while a call runs, the question has an id."""
    question = {"mode": "url", "url": url, "message": message}
    if revision.asks_by_result:
        return question
    return {**question, "elicitationId": sha256(url.encode()).hexdigest()[:32]}


def unfinished(url: str, message: str, revision: Revision, state: str | None = None) -> bytes:
    """A result that asks the client to open a link and to make its request again."""
    asked = {SIGN_IN: {"method": ELICIT, "params": link_question(url, message, revision)}}
    more = {} if state is None else {"requestState": state}
    return encode({"resultType": INPUT_REQUIRED, "inputRequests": asked, **more})


def link_needed(url: str, message: str, revision: Revision) -> RpcError:
    """The same for a client that is not asked by results: an error that carries the link."""
    return RpcError(URL_NEEDED, message, {"elicitations": [link_question(url, message, revision)]})

"""What a gateway's reply says, as far as the bridge has to know."""

import json
from collections.abc import Mapping
from typing import Any

from agent_gate.client.messages import HostMessage, error, outline
from agent_gate.mcp.errors import INTERNAL_ERROR


def looks_like_rpc(body: bytes) -> bool:
    return b'"jsonrpc"' in body[:200] or b'"jsonrpc"' in body[-200:]


def answers(data: bytes, wanted: str) -> bool:
    """Whether a message of a stream is the answer to the request with that id."""
    if b'"result"' not in data and b'"error"' not in data:
        return False
    said = outline(data)
    return "method" not in said and json.dumps(said.get("id")) == wanted


def result_in(body: bytes) -> Mapping[str, Any]:
    result = outline(body).get("result")
    return result if isinstance(result, dict) else {}


def refused(message: HostMessage, status: int, body: bytes) -> bytes:
    """An HTTP error that is no JSON-RPC message, as one."""
    return error(message.id, INTERNAL_ERROR, f"The gateway refused the request: {reason(status, body)}")


def reason(status: int, body: bytes) -> str:
    """Why a request was refused, and what to do about it."""
    try:
        text = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        text = f"HTTP status {status}"
    return f"{text}. Set AGENT_TOKEN to the agent's token" if status == 401 else str(text)

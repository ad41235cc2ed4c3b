"""The agent's own client as a channel: only where a rule says `via: client`, and only for this one call.

An answer given there is the agent's side speaking, so it never makes a grant, and the record names the channel.
"""

from agent_gate.approval.render import card, lines
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.ports import Conversation
from agent_gate.core.tool import Json
from agent_gate.errors import GatewayError

CHANNEL = "client"
MODERN = "2026-07-28"
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "run": {
            "type": "boolean",
            "title": "Run this call",
            "description": "Yes lets exactly this call run.",
        },
        "reason": {"type": "string", "title": "Reason", "maxLength": 500},
    },
    "required": ["run"],
}


def can_be_asked(conversation: Conversation | None) -> bool:
    """Whether the caller's client shows forms to its user."""
    offered = conversation.capabilities.get("elicitation") if conversation is not None else None
    return isinstance(offered, dict) and (not offered or "form" in offered)


def comes_back(conversation: Conversation | None) -> bool:
    """Whether this client is asked by an unfinished result, which it sends again with the answer."""
    return conversation is not None and conversation.era >= MODERN


def question(approval: Approval) -> dict[str, Json]:
    """The parameters of `elicitation/create`."""
    text = "\n".join(lines(card(approval), approval.asked_at))
    return {"mode": "form", "message": text, "requestedSchema": SCHEMA}


def answer_of(approval: Approval, said: Json) -> Answer | None:
    """What the client's user said; None where the form was put away unanswered."""
    action = said.get("action") if isinstance(said, dict) else None
    content = said.get("content") if isinstance(said, dict) else None
    content = content if isinstance(content, dict) else {}
    if approval.decision.via != "client" or action not in ("accept", "decline"):
        return None
    verdict: Json = "approve" if action == "accept" and content.get("run") is True else "deny"
    return Answer(
        verdict=verdict,
        person=approval.caller.name,
        channel=CHANNEL,
        reason=str(content.get("reason") or "")[:500],
    )


async def ask_client(approval: Approval, conversation: Conversation | None) -> Answer | None:
    """Put the question to the caller's own client; None where it cannot be asked or says nothing."""
    if approval.decision.via != "client" or conversation is None or not can_be_asked(conversation):
        return None
    try:
        said = await conversation.request("elicitation/create", question(approval))
    except GatewayError:
        return None
    return answer_of(approval, said)

"""The agent's own client as a channel: only where a rule says `via: client`, and only for this one call.

The question is a form of the protocol. An answer given there is the agent's side speaking, so it never makes a grant,
and the record names the channel.
"""

from collections.abc import Mapping

from agent_gate.approval.render import card, lines
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.tool import Json

CHANNEL = "client"
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


def shows_forms(capabilities: Mapping[str, Json]) -> bool:
    """Whether a client that declares this shows forms to its user."""
    offered = capabilities.get("elicitation")
    return isinstance(offered, dict) and (not offered or "form" in offered)


def form(approval: Approval) -> dict[str, Json]:
    """The question as the parameters of `elicitation/create`."""
    text = "\n".join(lines(card(approval), approval.asked.at))
    return {"mode": "form", "message": text, "requestedSchema": SCHEMA}


def answer_in(said: Json, caller: str) -> Answer | None:
    """What the client's user said; None where the form was put away unanswered."""
    action = said.get("action") if isinstance(said, dict) else None
    content = said.get("content") if isinstance(said, dict) else None
    content = content if isinstance(content, dict) else {}
    if action not in ("accept", "decline"):
        return None
    verdict: Json = "approve" if action == "accept" and content.get("run") is True else "deny"
    reason = str(content.get("reason") or "")[:500]
    return Answer(verdict=verdict, person=caller, channel=CHANNEL, reason=reason)

"""Outcomes and tools as the REST surface sends them."""

from typing import Any

from agent_gate.core.call import Outcome, Pending
from agent_gate.core.tool import Tool
from agent_gate.net.http import Response, error_response, json_response
from agent_gate.results.data import content_of, data_of


def outcome_response(outcome: Outcome | Pending) -> Response:
    """200 with the data, 202 while a person is asked, or the error."""
    if isinstance(outcome, Pending):
        body = {"call": outcome.call_id, "status": "pending", "expires_at": outcome.expires_at}
        return json_response(202, body, ((b"location", b"/api/calls/" + outcome.call_id.encode()),))
    if outcome.error is not None:
        return error_response(outcome.error, ((b"agent-gate-call", outcome.call_id.encode()),))
    assert outcome.result is not None
    body_bytes = b'{"call":"%b","status":"executed","data":%b' % (
        outcome.call_id.encode(),
        data_of(outcome.result),
    )
    content = content_of(outcome.result)
    return Response(200, body_bytes + (b',"content":%b}' % content if content is not None else b"}"))


def tool_summary(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.wire,
        "id": tool.id,
        "title": tool.definition.title or tool.upstream,
        "service": tool.namespace,
        "description": tool.description,
        "available": tool.available,
    }


def tool_details(tool: Tool) -> dict[str, Any]:
    traits = tool.traits
    details = tool_summary(tool) | {
        "input_schema": tool.input_schema,
        "traits": {
            "read_only": traits.read_only,
            "destructive": traits.destructive,
            "idempotent": traits.idempotent,
            "open_world": traits.open_world,
        },
    }
    if tool.definition.output_schema is not None:
        details["output_schema"] = tool.definition.output_schema
    return details

"""Outcomes and tools as the REST surface sends them."""

import logging
from typing import Any

from agent_gate.core.call import Outcome, Pending, Result
from agent_gate.core.tool import Tool
from agent_gate.core.traits import TRAITS
from agent_gate.errors import Internal, OutcomeUnknown
from agent_gate.net.http import Response, error_response, json_response
from agent_gate.results.data import content_of, data_of
from agent_gate.results.kept import NO_RESULT

log = logging.getLogger("agent_gate.rest")


def outcome_response(outcome: Outcome | Pending) -> Response:
    """200 with the data, 202 while a person is asked, or the error."""
    if isinstance(outcome, Pending):
        body = {"call": outcome.call_id, "status": "pending", "expires_at": outcome.expires_at}
        return json_response(202, body, ((b"location", b"/api/calls/" + outcome.call_id.encode()),))
    error = outcome.error
    if outcome.result is not None and error is None:
        try:
            return Response(200, executed(outcome.call_id, outcome.result))
        except Exception:  # the boundary: whatever the tool answered, the caller is answered
            log.exception("The result of %s cannot be shown", outcome.call_id)
            error = OutcomeUnknown(NO_RESULT)
    error = error or Internal("The call ended without a result")
    return error_response(error, ((b"agent-gate-call", outcome.call_id.encode()),))


def executed(call_id: str, result: Result) -> bytes:
    body = b'{"call":"%b","status":"executed","data":%b' % (call_id.encode(), data_of(result))
    content = content_of(result)
    return body + (b',"content":%b}' % content if content is not None else b"}")


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
    details = tool_summary(tool) | {
        "input_schema": tool.input_schema,
        "traits": {name: getattr(tool.traits, name) for name in TRAITS},
    }
    if tool.definition.output_schema is not None:
        details["output_schema"] = tool.definition.output_schema
    return details

"""One HTTP reply into a result, or into an error that says what the service's file says. Pure."""

import re
from collections.abc import Sequence

import msgspec

from agent_gate.config.services import ErrorMapping, ServiceConfig, ToolDefinition
from agent_gate.core.call import Result
from agent_gate.errors import DependencyUnavailable, HTTPServiceError
from agent_gate.net.exchange import Reply, retry_after
from agent_gate.observe.redact import Redactor

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
LONGEST_BODY = 500
MAY_RETRY = frozenset({502, 503, 504})


def mapped(errors: Sequence[ErrorMapping], status: int) -> ErrorMapping | None:
    return next((entry for entry in errors if entry.status == status), None)


def shown_body(body: bytes, redactor: Redactor) -> str:
    """The service's own words: short, clean, and without anything secret."""
    text = CONTROL.sub("", body[: LONGEST_BODY * 4].decode("utf-8", "replace"))
    return redactor.text(text)[:LONGEST_BODY]


def failure(service: ServiceConfig, reply: Reply, redactor: Redactor) -> Exception:
    """What the agent is told about a reply that is not a success."""
    entry = mapped(service.errors, reply.status)
    if entry is not None:
        message = entry.message.replace("{status}", str(reply.status)).replace(
            "{body}", shown_body(reply.body, redactor)
        )
        return HTTPServiceError(message, details={"status": reply.status})
    if reply.status == 429:
        return DependencyUnavailable(f"{service.name} asks to slow down", retry_after=retry_after(reply, 1.0))
    if 300 <= reply.status < 400:
        return HTTPServiceError(
            f"{service.name} answered with a redirect ({reply.status}), which is not followed",
            details={"status": reply.status},
        )
    return HTTPServiceError(
        f"{service.name} answered with HTTP {reply.status}", details={"status": reply.status}
    )


def valid_json(body: bytes) -> bool:
    try:
        body.decode("utf-8")
        msgspec.json.decode(body)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return False
    return True


def result(tool: ToolDefinition, reply: Reply) -> Result:
    """The service's JSON, wrapped where the tool says so; no content is `null`."""
    body = reply.body.strip()
    if not body and reply.status in (200, 201, 202, 204, 205):
        body = b"null"
    elif not valid_json(body):
        raise HTTPServiceError("Expected JSON response")
    wrap = tool.response.wrap if tool.response is not None else None
    return Result(b"{%b:%b}" % (msgspec.json.encode(wrap), body) if wrap else body)

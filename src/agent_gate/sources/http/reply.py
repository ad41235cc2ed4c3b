"""One HTTP reply into a result, or into an error that says what the service's file says. Pure."""

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from shlex import quote
from typing import Any

import msgspec

from agent_gate.config.services.settings import (
    ErrorMapping,
    ResponseDefinition,
    ServiceConfig,
    ToolDefinition,
)
from agent_gate.core.call import Result
from agent_gate.core.credentials import SignInNeeded
from agent_gate.errors import DependencyUnavailable, HTTPServiceError
from agent_gate.net.exchange import WholeReply, retry_after
from agent_gate.observe.redact import Redactor

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
CHARSET = re.compile(rb"(?i);\s*charset=\"?([a-z0-9_.:-]{1,40})")
MEDIA_TYPE = re.compile(rb"[A-Za-z0-9.+-]{1,60}/[A-Za-z0-9.+-]{1,90}")
JSON = ResponseDefinition()
LONGEST_BODY = 500
SAYS_NOTHING = frozenset({"{}", "[]", "null", '""'})
MAY_RETRY = frozenset({502, 503, 504})
UNAUTHENTICATED = 401


def mapped(errors: Sequence[ErrorMapping], status: int) -> ErrorMapping | None:
    return next((entry for entry in errors if entry.status == status), None)


def shown_body(body: bytes, redactor: Redactor) -> str:
    """The service's own words: short, clean, and without anything secret."""
    text = CONTROL.sub("", body[: LONGEST_BODY * 4].decode("utf-8", "replace"))
    return redactor.text(text)[:LONGEST_BODY]


def failure(service: ServiceConfig, reply: WholeReply, redactor: Redactor) -> Exception:
    """What the agent is told about a reply that is not a success."""
    message = said_of(service, reply, redactor)
    if reply.status == 429:
        return DependencyUnavailable(message, retry_after=retry_after(reply, 1.0))
    if (
        reply.status == UNAUTHENTICATED
        and service.auth.type != "none"
        and mapped(service.errors, reply.status) is None
    ):
        return SignInNeeded(
            f"{message}. It does not take the gateway's credential: check its auth. When it is right, reload, or "
            f"reconnect it with `agent-gate sources reconnect {quote(service.name)}`"
        )
    return HTTPServiceError(message, details={"status": reply.status})


def said_of(service: ServiceConfig, reply: WholeReply, redactor: Redactor) -> str:
    """The words of the service's file, where it has some for the status, else ours."""
    entry = mapped(service.errors, reply.status)
    if entry is not None:
        body = shown_body(reply.body, redactor)
        return entry.message.replace("{status}", str(reply.status)).replace("{body}", body)
    if reply.status == 429:
        return f"{service.name} asks to slow down"
    if 300 <= reply.status < 400:
        return f"{service.name} answered with a redirect ({reply.status}), which is not followed"
    why = reason(reply, redactor)
    return f"{service.name} answered with HTTP {reply.status}{': ' if why else ''}{why}"


def reason(reply: WholeReply, redactor: Redactor) -> str:
    """What the service says is wrong with a request, where it is meant to be read: a page or a 500's trace is not."""
    kind = (reply.header(b"content-type") or b"").lower()
    meant = b"json" in kind or kind.startswith(b"text/plain")
    shown = shown_body(reply.body, redactor).strip() if meant and 400 <= reply.status < 500 else ""
    return "" if shown in SAYS_NOTHING else shown


def valid_json(body: bytes) -> bool:
    try:
        body.decode("utf-8")
        msgspec.json.decode(body)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return False
    return True


def json_of(reply: WholeReply) -> bytes:
    """The service's own bytes; no content is `null`."""
    body = reply.body.strip()
    if not body and reply.status in (200, 201, 202, 204, 205):
        return b"null"
    if not valid_json(body):
        raise HTTPServiceError("Expected JSON response")
    return body


def text_of(reply: WholeReply) -> bytes:
    """Whatever it says as one JSON text, read in the character set that it names."""
    named = CHARSET.search(reply.header(b"content-type") or b"")
    try:
        return msgspec.json.encode(reply.body.decode(named[1].decode() if named else "utf-8", "replace"))
    except (LookupError, UnicodeError):
        return msgspec.json.encode(reply.body.decode("utf-8", "replace"))


def file_of(tool: ToolDefinition, reply: WholeReply) -> Result:
    """A picture or a sound as clients show them, anything else as an embedded resource."""
    named = MEDIA_TYPE.match(reply.header(b"content-type") or b"")
    kind = named[0].decode().lower() if named else "application/octet-stream"
    data, family = b64encode(reply.body).decode(), kind.partition("/")[0]
    if family in ("image", "audio"):
        part: dict[str, Any] = {"type": family, "data": data, "mimeType": kind}
    else:
        part = {
            "type": "resource",
            "resource": {"uri": f"file:///{tool.name}", "mimeType": kind, "blob": data},
        }
    said = {"type": "text", "text": f"{kind}, {len(reply.body)} bytes"}
    return Result(msgspec.json.encode({"content": [said, part]}), "mcp")


def result(tool: ToolDefinition, reply: WholeReply, masked: Callable[[bytes], bytes]) -> Result:
    """The service's answer as what the tool says it is, wrapped where it says so."""
    answer = tool.response or JSON
    if answer.type == "file":
        return file_of(tool, reply)
    body = masked(text_of(reply) if answer.type == "text" else json_of(reply))
    return Result(b"{%b:%b}" % (msgspec.json.encode(answer.wrap), body) if answer.wrap else body)

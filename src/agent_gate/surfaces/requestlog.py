"""A line for every HTTP request where somebody debugs. A call has a line of its own; a list or a refusal only this one."""

import logging
from collections.abc import Awaitable
from time import monotonic

import msgspec

from agent_gate.net.http import Answer, Handler, Request, Response, StreamResponse

log = logging.getLogger("agent_gate.requests")

TOOLS = "/api/tools/"
LONGEST = 200


class RpcParams(msgspec.Struct):
    name: str | None = None


class RpcGlance(msgspec.Struct):
    """What a line says of a JSON-RPC message."""

    method: str | None = None
    params: RpcParams | None = None


def logged(handler: Handler) -> Handler:
    """`handler` with a line for each request, or itself where nobody would read them, so that nobody pays for it."""
    if not log.isEnabledFor(logging.DEBUG):
        return handler

    def handle(request: Request) -> Answer | Awaitable[Answer]:
        began = monotonic()
        found = handler(request)
        if isinstance(found, Response | StreamResponse):
            note(request, found.status, began)
            return found
        return awaited(request, found, began)

    return handle


async def awaited(request: Request, found: Awaitable[Answer], began: float) -> Answer:
    status: int | None = None
    try:
        answer = await found
        status = answer.status
        return answer
    finally:
        note(request, status, began)


def note(request: Request, status: int | None, began: float) -> None:
    rpc, tool = asked(request)
    fields = {
        "method": request.method,
        "path": request.path,
        "rpc": rpc,
        "tool": tool,
        "status": status,
        "seconds": round(monotonic() - began, 6),
    }
    log.debug("Request ended", extra={name: value for name, value in fields.items() if value is not None})


def asked(request: Request) -> tuple[str | None, str | None]:
    """The method of a JSON-RPC message and the tool it names; None where there is none."""
    path = request.path
    if path.startswith(TOOLS):
        return None, path.removeprefix(TOOLS)[:LONGEST]
    if not path.startswith("/mcp") or not request.body:
        return None, None
    try:
        message = msgspec.json.decode(request.body, type=RpcGlance)
    except (msgspec.DecodeError, RecursionError):
        return None, None
    tool = message.params.name if message.params else None
    return (message.method or "")[:LONGEST] or None, tool[:LONGEST] if tool else None

"""A line for each request (method, tool, seconds) where `log.requests` wants them; silent otherwise, for speed."""

import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import msgspec

from agent_gate.net.http import Handler, HttpAnswer, Request, Response, StreamResponse
from agent_gate.observe.log import REQUESTS

log = logging.getLogger(REQUESTS)

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
    if not log.isEnabledFor(logging.INFO):
        return handler

    def handle(request: Request) -> HttpAnswer | Awaitable[HttpAnswer]:
        began = monotonic()
        found = handler(request)
        if isinstance(found, Response | StreamResponse):
            note(request, found.status, began)
            return found
        return log_awaited(request, found, began)

    return handle


async def log_awaited(request: Request, found: Awaitable[HttpAnswer], began: float) -> HttpAnswer:
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
    tell(fields)


def tell(fields: dict[str, Any]) -> None:
    log.info("Request ended", extra={name: value for name, value in fields.items() if value is not None})


def watch_message(surface: str, rpc: str, params: Any = None) -> Callable[[], None]:
    """A request that came in a message and not by HTTP, with its params or the tool it names: what is returned is
    called when it ended."""
    if not log.isEnabledFor(logging.INFO):
        return say_nothing
    began = monotonic()
    name = params.get("name") if isinstance(params, dict) else getattr(params, "name", params)
    tool = name[:LONGEST] if isinstance(name, str) else None
    return lambda: tell(
        {"surface": surface, "rpc": rpc[:LONGEST], "tool": tool, "seconds": round(monotonic() - began, 6)}
    )


def say_nothing() -> None:
    """Nobody wants to hear of requests."""


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

"""A small route table: method and path template to handler, with the template's values passed on."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from agent_gate.core.strictjson import parse
from agent_gate.errors import InvalidArgs
from agent_gate.net.http import Request, Response, StreamResponse, refusal

Reply = Response | StreamResponse


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of an operator: who, what, and the values in its path."""

    request: Request
    person: str
    channel: str
    values: dict[str, str]

    def body(self) -> dict[str, Any]:
        value = parse(self.request.body) if self.request.body.strip() else {}
        if not isinstance(value, dict):
            raise InvalidArgs("The body must be a JSON object")
        return value

    def number(self, name: str, default: float, most: float) -> float:
        """A number from the query, kept within bounds."""
        try:
            return min(most, max(0.0, float(self.request.params().get(name, default))))
        except ValueError:
            raise InvalidArgs(f"{name} must be a number") from None


Handler = Callable[[Ask], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    handler: Handler
    summary: str

    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path))


class Routes:
    """Finds the handler of a request; the same table describes the API."""

    def __init__(self, routes: list[Route]) -> None:
        self.routes = routes
        self._compiled = [(route, route.pattern()) for route in routes]

    async def dispatch(self, request: Request, person: str, channel: str) -> Reply:
        allowed = set()
        for route, pattern in self._compiled:
            found = pattern.fullmatch(request.path)
            if found is None:
                continue
            if route.method == request.method:
                values = {name: unquote(value) for name, value in found.groupdict().items()}
                return await route.handler(Ask(request, person, channel, values))
            allowed.add(route.method)
        if allowed:
            return refusal(
                405,
                "INVALID_ARGS",
                f"{request.method} is not offered here",
                ((b"allow", ", ".join(sorted(allowed)).encode()),),
            )
        return refusal(404, "INVALID_ARGS", "There is nothing here")

    def openapi(self, version: str) -> dict[str, Any]:
        """What the table offers, as OpenAPI."""
        paths: dict[str, Any] = {}
        for route in self.routes:
            names = re.findall(r"\{(\w+)\}", route.path)
            operation: dict[str, Any] = {
                "summary": route.summary,
                "responses": {"default": {"description": "JSON"}},
            }
            if names:
                operation["parameters"] = [
                    {"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names
                ]
            paths.setdefault(route.path, {})[route.method.lower()] = operation
        return {
            "openapi": "3.1.0",
            "info": {"title": "agent-gate admin API", "version": version},
            "paths": paths,
        }

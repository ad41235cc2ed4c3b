"""A small route table: method and path template to handler, and the OpenAPI document that describes it."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from agent_gate.access.roles import Rights, Role, check_role
from agent_gate.core.strict import parse
from agent_gate.errors import ERROR_SCHEMA, InvalidArgs
from agent_gate.net.http import HttpAnswer, Request, Response, StreamResponse, json_response, refusal

Properties = Mapping[str, Mapping[str, Any]]

TERMINAL = "terminal"
"""The channel of those who are at the gateway's own machine."""
TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "number"}
FLAG: Mapping[str, Any] = {"type": "boolean"}
OBJECT: Mapping[str, Any] = {"type": "object"}
TEXTS: Mapping[str, Any] = {"type": "array", "items": TEXT}


@dataclass(frozen=True, slots=True)
class OperatorRequest:
    """One request of an operator: who, what, and the values in its path."""

    request: Request
    person: str
    channel: str
    rights: Rights
    values: dict[str, str]

    def body(self) -> dict[str, Any]:
        value = parse(self.request.body) if self.request.body.strip() else {}
        if not isinstance(value, dict):
            raise InvalidArgs("The body must be a JSON object")
        return value

    def param(self, name: str) -> str | None:
        """A value from the query; an empty one counts as not given."""
        return self.request.params().get(name) or None

    def number(self, name: str, default: float, most: float) -> float:
        """A number from the query, kept within bounds."""
        try:
            return min(most, max(0.0, float(self.request.params().get(name, default))))
        except ValueError:
            raise InvalidArgs(f"{name} must be a number") from None


RouteAnswer = Any
"""What a route answers: a value, which is sent as JSON, or an `HttpAnswer` where there is more to say."""
RouteHandler = Callable[[OperatorRequest], Awaitable[RouteAnswer]]


@dataclass(frozen=True, slots=True)
class Route:
    """One operation. `query` and `body` say what it takes; `required` names what the body must have. `role` is what it
    needs where that is not what its method says: looking needs a viewer, changing something an operator."""

    method: str
    path: str
    handler: RouteHandler
    summary: str
    query: Properties = field(default_factory=dict)
    body: Properties = field(default_factory=dict)
    required: tuple[str, ...] = ()
    role: Role | None = None

    @property
    def needs(self) -> Role:
        return self.role or ("viewer" if self.method == "GET" else "operator")

    def match(self, path: str) -> dict[str, str] | None:
        """What `path` has at the names of the template; None where it is another's."""
        named, given, values = self.path.split("/"), path.split("/"), {}
        if len(named) != len(given):
            return None
        for part, value in zip(named, given, strict=True):
            if part.startswith("{") and value:
                values[part[1:-1]] = unquote(value)
            elif part != value:
                return None
        return values

    def operation(self) -> dict[str, Any]:
        """This route as an OpenAPI operation."""
        name = re.sub(r"\W+", "_", f"{self.method.lower()}_{self.path}").strip("_")
        in_path = [
            {"name": n, "in": "path", "required": True, "schema": TEXT}
            for n in re.findall(r"\{(\w+)\}", self.path)
        ]
        in_query = [{"name": n, "in": "query", "schema": schema} for n, schema in self.query.items()]
        out: dict[str, Any] = {
            "operationId": name,
            "summary": self.summary,
            "responses": RESPONSES,
            "x-role": self.needs,
        }
        if in_path or in_query:
            out["parameters"] = in_path + in_query
        if self.body:
            schema = {"type": "object", "properties": self.body, "required": list(self.required)}
            out["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        return out


class Routes:
    """Finds the handler of a request; the same table describes the API."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = list(routes)

    async def dispatch(self, request: Request, person: str, channel: str, rights: Rights) -> HttpAnswer:
        allowed = set()
        for route in self.routes:
            values = route.match(request.path)
            if values is None:
                continue
            if route.method == request.method:
                check_role(rights, route.needs, person)
                told = await route.handler(OperatorRequest(request, person, channel, rights, values))
                return told if isinstance(told, Response | StreamResponse) else json_response(200, told)
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
            paths.setdefault(route.path, {})[route.method.lower()] = route.operation()
        return {
            "openapi": "3.1.0",
            "info": {"title": "agent-gate admin API", "version": version},
            "paths": paths,
            "components": {"securitySchemes": SCHEMES, "schemas": {"Error": ERROR_SCHEMA}},
            "security": [{"operator": []}, {"session": [], "key": []}],
        }


RESPONSES = {
    "2XX": {"description": "Done."},
    "default": {
        "description": "What went wrong, and what to do.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    },
}
SCHEMES = {
    "operator": {
        "type": "http",
        "scheme": "bearer",
        "description": "An operator token, for programs.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "agent_gate_PORT",
        "description": "The page's session; needs its key too.",
    },
    "key": {"type": "apiKey", "in": "header", "name": "Agent-Gate-Key"},
}

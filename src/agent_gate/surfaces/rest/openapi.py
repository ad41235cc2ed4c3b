"""The OpenAPI document: one operation per tool that the caller sees. Pure."""

from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import Any

from agent_gate import __version__
from agent_gate.core.tool import Tool
from agent_gate.errors import ERROR_SCHEMA, GatewayError, leaves

JSON = "application/json"
LONGEST_WAIT = 300.0
PENDING_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["call", "status", "expires_at"],
    "properties": {
        "call": {"type": "string"},
        "status": {"const": "pending"},
        "expires_at": {"type": "number"},
    },
}
CALL_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
WAIT = {
    "name": "wait",
    "in": "query",
    "description": "Seconds to wait for the outcome.",
    "schema": {"type": "number", "minimum": 0, "maximum": LONGEST_WAIT},
}


def refers(value: Any) -> bool:
    """Whether a schema refers to parts of itself, which would not survive being placed inside this document."""
    if isinstance(value, dict):
        return "$ref" in value or "$dynamicRef" in value or any(map(refers, value.values()))
    return isinstance(value, list) and any(map(refers, value))


def embedded(schema: Any) -> dict[str, Any]:
    """A tool's schema as it may stand inside the document."""
    if refers(schema):
        return {"type": "object", "description": "See the tool's own description for its schema."}
    return {
        key: value for key, value in deepcopy(dict(schema)).items() if key not in ("$schema", "$id", "$defs")
    }


def executed_schema(tool: Tool) -> dict[str, Any]:
    output = tool.definition.output_schema
    return {
        "type": "object",
        "required": ["call", "status", "data"],
        "properties": {
            "call": {"type": "string"},
            "status": {"const": "executed"},
            "data": embedded(output) if output else {},
            "content": {"type": "array"},
        },
    }


def responses(executed: dict[str, Any]) -> dict[str, Any]:
    """Every status a call can end in, from the one table of errors."""
    out: dict[str, Any] = {
        "200": {"description": "Executed.", "content": {JSON: {"schema": executed}}},
        "202": {
            "description": "A person is asked.",
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/Pending"}}},
        },
    }
    statuses = sorted({cls.status for cls in leaves() if cls is not GatewayError} | {405, 413})
    for status in statuses:
        out[str(status)] = {"$ref": "#/components/responses/Error"}
    return out


def operation(tool: Tool) -> dict[str, Any]:
    return {
        "operationId": tool.wire,
        "summary": (tool.description.partition("\n")[0] or tool.wire)[:120],
        "description": tool.description,
        "tags": [tool.namespace],
        "requestBody": {
            "required": bool(tool.input_schema.get("required")),
            "content": {JSON: {"schema": embedded(tool.input_schema)}},
        },
        "responses": responses(executed_schema(tool)),
    }


def free(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


def fixed_paths(taken: Collection[str]) -> dict[str, Any]:
    """The operations that are no tools; a tool of the same name keeps it."""
    anything = {"type": "object", "required": ["call", "status", "data"]}
    listing = {"type": "object", "required": ["tools"], "properties": {"tools": {"type": "array"}}}
    ok = {"description": "What there is.", "content": {JSON: {"schema": listing}}}
    error = {"$ref": "#/components/responses/Error"}
    return {
        "/api/tools": {
            "get": {
                "operationId": free("list_tools", taken),
                "responses": {"200": ok, "401": error, "405": error, "429": error},
            }
        },
        "/api/calls/{id}": {
            "parameters": [CALL_ID],
            "get": {
                "operationId": free("get_call", taken),
                "parameters": [WAIT],
                "responses": responses(anything),
            },
            "delete": {
                "operationId": free("withdraw_call", taken),
                "responses": {
                    "204": {"description": "Withdrawn."},
                    "401": error,
                    "404": error,
                    "405": error,
                    "429": error,
                },
            },
        },
    }


def document(tools: Sequence[Tool]) -> dict[str, Any]:
    """OpenAPI 3.1 for these tools."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "agent-gate",
            "version": __version__,
            "description": "Tools behind the gate. Every call passes policy.",
        },
        "security": [{"token": []}],
        "paths": fixed_paths({tool.wire for tool in tools})
        | {f"/api/tools/{tool.wire}": {"post": operation(tool)} for tool in tools},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": ERROR_SCHEMA, "Pending": PENDING_SCHEMA},
            "responses": {
                "Error": {
                    "description": "The call did not run, or failed.",
                    "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
            },
        },
    }

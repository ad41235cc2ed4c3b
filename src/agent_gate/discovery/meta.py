"""The meta-tools as definitions, their arguments as types, and their errors in the shape agents are promised.

Nothing here performs a call: surfaces list `meta_tools(mode)`, parse arguments with `parse`, and hand errors
to `error_body`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from agent_gate.core.call import Mode
from agent_gate.core.tool import Json, JsonSchema, Tool
from agent_gate.discovery.browse import MOST, TOP_K
from agent_gate.discovery.cards import Deck
from agent_gate.errors import GatewayError, InvalidArgs, ToolNotFound

SENTINEL: JsonSchema = {"type": "object"}
TOOL_ID_KEY = "agent-gate/tool-id"
OUTWARD = {"INVALID_ARGS": "ARGS_INVALID", "TOOL_NOT_FOUND": "HYDRATE_FAILED"}

_TEXT = {"type": "string"}
_OBJECT = {"type": "object"}

BROWSE: Mapping[str, Any] = {
    "name": "tool_browse",
    "description": (
        "Find tools. Pass `query` (what you want to do, in plain English) for the best matches, or `path` "
        "(/ for all namespaces, then the id of a card) to look around. Call a tool with tool_execute."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "query": _TEXT,
            "path": _TEXT,
            "top_k": {"type": "integer", "minimum": 1, "maximum": MOST, "default": TOP_K},
        },
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
HYDRATE: Mapping[str, Any] = {
    "name": "tool_hydrate",
    "description": "Get the full description and input schema of a tool by its name or id.",
    "inputSchema": {
        "type": "object",
        "properties": {"tool_id": _TEXT},
        "required": ["tool_id"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
EXECUTE: Mapping[str, Any] = {
    "name": "tool_execute",
    "description": (
        "Run a tool. If the arguments do not fit, the error says what the tool takes. A handle from an earlier "
        "result (result:…, or result:…#$.json.path) may stand for a value in args."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {"tool_id": _TEXT, "args": _OBJECT},
        "required": ["tool_id"],
        "additionalProperties": False,
    },
}
VIEW: Mapping[str, Any] = {
    "name": "tool_view",
    "description": (
        "Look into a stored result. selector.type: head {chars}, lines {start, end}, rows {start, end}, "
        "json_keys {path, keys}, grep {pattern, ignore_case}, jsonpath {path}, part {index} for an image."
    ),
    "inputSchema": {
        "type": "object",
        "properties": {
            "handle": _TEXT,
            "selector": {"type": "object", "properties": {"type": _TEXT}, "required": ["type"]},
        },
        "required": ["handle", "selector"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
META_TOOLS: Mapping[Mode, tuple[Mapping[str, Any], ...]] = {
    "full": (),
    "proxy": (HYDRATE, EXECUTE, VIEW),
    "gateway": (BROWSE, EXECUTE, VIEW),
}


class BrowseArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    query: str | None = None
    path: str | None = None
    top_k: int = TOP_K


class HydrateArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tool_id: str


class ExecuteArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tool_id: str
    args: dict[str, Any] = {}


class ViewArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    handle: str
    selector: dict[str, Any]


Args = BrowseArgs | HydrateArgs | ExecuteArgs | ViewArgs
ARGUMENTS: Mapping[str, type[Args]] = {
    "tool_browse": BrowseArgs,
    "tool_hydrate": HydrateArgs,
    "tool_execute": ExecuteArgs,
    "tool_view": ViewArgs,
}


OBJECTS = ("args", "selector")


def meta_tools(mode: Mode) -> tuple[Mapping[str, Any], ...]:
    """The meta-tools of a mode, as MCP tool definitions."""
    return META_TOOLS[mode]


def parse(name: str, arguments: Mapping[str, Json]) -> Args:
    """A meta-tool's arguments as a type; `InvalidArgs` says which one is wrong."""
    kind = ARGUMENTS.get(name)
    if kind is None:
        raise ToolNotFound(f"Unknown tool: {name}. The meta-tools are {', '.join(ARGUMENTS)}.")
    written = {key: _decoded(text) for key in OBJECTS if isinstance(text := arguments.get(key), str)}
    arguments = {**arguments, **written}
    try:
        found: Args = msgspec.convert(arguments, kind)
    except msgspec.ValidationError as error:
        takes = ", ".join(kind.__struct_fields__)
        raise InvalidArgs(f"{name}: {error}. It takes {takes}.{_advice(kind, arguments)}") from error
    if isinstance(found, BrowseArgs) and not 1 <= found.top_k <= MOST:
        raise InvalidArgs(f"tool_browse: `top_k` is from 1 to {MOST}.")
    return found


def _decoded(text: str) -> Json:
    """Models write an object now and then as the text of one; a text that is none stays what it is."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _advice(kind: type[Args], arguments: Mapping[str, Json]) -> str:
    """What the names alone do not say: that a text is no JSON, and where a tool's own arguments belong."""
    if broken := [key for key in OBJECTS if isinstance(arguments.get(key), str)]:
        return f" The text of `{broken[0]}` is no JSON object."
    strays = kind is ExecuteArgs and arguments.keys() - set(kind.__struct_fields__)
    return " The tool's own arguments go into `args`." if strays and "tool_id" in arguments else ""


def error_body(error: GatewayError, path: str = "") -> dict[str, Any]:
    """An error as meta-tools answer it; `path` is the offending path, tool id or handle."""
    body: dict[str, Any] = {
        "error": OUTWARD.get(error.code, error.code),
        "message": error.message,
        "path": path,
        "retryable": error.retryable,
    }
    details = {key: value for key, value in (error.details or {}).items() if key != "path" or value != path}
    return {**body, "details": details} if details else body


def stripped(
    tools: Iterable[Tool], deck: Deck, names: Literal["wire", "tool_id"] = "wire"
) -> list[dict[str, Any]]:
    """The discovery-only list of proxy mode: every tool, its description shortened, its schema a sentinel."""
    listed = []
    for tool in tools:
        card = deck.cards.get(tool.id)
        if card is None:
            continue
        entry = {"name": tool.wire if names == "wire" else tool.id, "description": card.description}
        extra: dict[str, Any] = {"title": tool.id, "_meta": {TOOL_ID_KEY: tool.id}} if names == "wire" else {}
        listed.append({**entry, **extra, "inputSchema": SENTINEL})
    return listed


def hydrated(tool: Tool) -> dict[str, Any]:
    """The full definition that `tool_hydrate` answers."""
    definition = tool.definition
    body: dict[str, Any] = {
        "tool_id": tool.id,
        "name": tool.wire,
        "description": definition.description,
        "inputSchema": definition.input_schema,
    }
    if definition.output_schema is not None:
        body["outputSchema"] = definition.output_schema
    if definition.annotations:
        body["annotations"] = dict(definition.annotations)
    return body

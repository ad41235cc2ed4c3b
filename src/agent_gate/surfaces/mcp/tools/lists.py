"""The catalog as `tools/list` shows it: bytes made once per caller, mode and revision, and spliced from then on."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agent_gate.access.view import MadeFor
from agent_gate.calls.meta import Visible
from agent_gate.core.call import Caller
from agent_gate.core.tool import Definition, Json, Tool
from agent_gate.core.traits import NO_TRAITS, TRAITS
from agent_gate.mcp.errors import INVALID_PARAMS, RpcError
from agent_gate.mcp.messages import encode
from agent_gate.mcp.names import META_SERVER, META_TOOL, SELF
from agent_gate.mcp.results import without_protocol
from agent_gate.mcp.revisions import Revision
from agent_gate.surfaces.mcp.modes import ToolMode

PAGE = 2_000
TTL_MS = 10_000
GATE_RESULT = "gate_result"
WAITING_TOOL: dict[str, Json] = {
    "name": GATE_RESULT,
    "title": "Result of a waiting call",
    "description": "Get the result of a call that waited for a person. Give the id that the call answered with.",
    "inputSchema": {
        "type": "object",
        "properties": {"id": {"type": "string", "description": "The id of the call that waits"}},
        "required": ["id"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
}
ENDING = b'"resultType":"complete","ttlMs":%d,"cacheScope":"private","_meta":%b' % (
    TTL_MS,
    encode({META_SERVER: SELF}),
)


def annotations(definition: Definition) -> Mapping[str, Json]:
    """What the source said, or else what is known of the tool's traits."""
    if definition.annotations or definition.traits == NO_TRAITS:
        return definition.annotations
    return {trait.hint: getattr(definition.traits, name) for name, trait in TRAITS.items()}


def entry(tool: Tool, revision: Revision) -> dict[str, Any]:
    """One tool as clients see it; the input schema is what its source gave."""
    definition, output = tool.definition, tool.definition.output_schema
    shown: dict[str, Any] = {"name": tool.wire}
    if title := definition.title or (definition.name if definition.name != tool.wire else ""):
        shown["title"] = title
    if definition.description:
        shown["description"] = definition.description
    shown["inputSchema"] = definition.input_schema
    if output is not None and (revision.any_output_schema or output.get("type") == "object"):
        shown["outputSchema"] = output
    if hints := annotations(definition):
        shown["annotations"] = hints
    if definition.icons:
        shown["icons"] = definition.icons
    shown["_meta"] = {**without_protocol(definition.meta), META_TOOL: tool.id}
    return shown


def listed(name: bytes, entries: bytes, revision: Revision, *, following: str | None = None) -> bytes:
    """A list result around a JSON array; newer revisions also say how long it may be kept, and by whom."""
    cursor = b'"nextCursor":%b,' % encode(following) if following is not None else b""
    if revision.types_results:
        return b'{"%b":%b,%b%b}' % (name, entries, cursor, ENDING)
    return b'{"%b":%b%b}' % (name, entries, b"," + cursor[:-1] if cursor else b"")


class ToolLists:
    """Pages of `tools/list`. What `visible` returns is compared by identity to know whether anything changed."""

    def __init__(self, visible: Visible, modes: Mapping[str, ToolMode]) -> None:
        self._visible, self._modes = visible, modes
        self._made = MadeFor[list[bytes]]()

    def keep(self, names: Collection[str]) -> None:
        """Forget the lists of callers of other names."""
        self._made.keep(names)

    def page(self, caller: Caller, mode: str, revision: Revision, cursor: Json = None) -> bytes:
        pages = self.pages(caller, mode, revision)
        if cursor is None:
            return pages[0]
        for number in range(1, len(pages)):
            if cursor == str(number * PAGE):
                return pages[number]
        raise RpcError(INVALID_PARAMS, "Invalid params: this cursor is not one that the list gave out")

    def pages(self, caller: Caller, mode: str, revision: Revision) -> list[bytes]:
        other = self._modes.get(mode)
        if other is not None:
            array = other.list(caller)
            if array is not None:
                return [listed(b"tools", array, revision)]
        tools = self._visible(caller)
        form = (mode, revision)
        made = self._made.get(caller.name, tools, form)
        return made or self._made.put(caller.name, tools, make_pages(tools, revision), form)


def make_pages(tools: Sequence[Tool], revision: Revision) -> list[bytes]:
    entries = [*(entry(tool, revision) for tool in tools), WAITING_TOOL] if tools else []
    starts = range(0, max(1, len(entries)), PAGE)
    return [
        listed(
            b"tools",
            encode(entries[start : start + PAGE]),
            revision,
            following=str(start + PAGE) if start + PAGE < len(entries) else None,
        )
        for start in starts
    ]

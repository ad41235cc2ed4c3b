"""The resources that a server leads to without listing them: results of its tools may, and so may the tools themselves."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from agent_gate.core.tool import Definition, Json
from agent_gate.mcp.messages import UNREADABLE

MOST = 1_000
LONGEST = 4_096
RESOURCE = b'"resource'
"""How the type of every such part begins."""


class Embedded(msgspec.Struct):
    uri: str = ""


class LinkedPart(msgspec.Struct):
    """A link has its address itself, a resource that came along has it inside."""

    type: str = ""
    uri: str = ""
    resource: Embedded | None = None


class Content(msgspec.Struct):
    content: list[LinkedPart] = []


decode_content = msgspec.json.Decoder(Content).decode


class Links:
    """The latest addresses of results, and those of the tools as they are listed now."""

    def __init__(self) -> None:
        self._latest: OrderedDict[str, None] = OrderedDict()
        self._of_tools: frozenset[str] = frozenset()

    def __contains__(self, uri: object) -> bool:
        return uri in self._latest or uri in self._of_tools

    def note_listed(self, tools: Iterable[Definition]) -> None:
        self._of_tools = frozenset(uri for tool in tools for uri in pages(tool.meta))

    def note(self, body: bytes) -> None:
        """Remember what a result leads to; only one with `RESOURCE` in it can."""
        try:
            parts = decode_content(body).content
        except UNREADABLE:
            return
        for part in parts:
            uri = part.resource.uri if part.type == "resource" and part.resource is not None else part.uri
            if part.type in ("resource", "resource_link") and 0 < len(uri) <= LONGEST:
                self._keep(uri)

    def _keep(self, uri: str) -> None:
        self._latest[uri] = None
        self._latest.move_to_end(uri)
        if len(self._latest) > MOST:
            self._latest.popitem(last=False)


def pages(meta: Mapping[str, Json]) -> Iterator[str]:
    """The page that a host shows for a tool, under both names it is given."""
    ui = meta.get("ui")
    for uri in (ui.get("resourceUri") if isinstance(ui, dict) else None, meta.get("ui/resourceUri")):
        if isinstance(uri, str) and len(uri) <= LONGEST:
            yield uri

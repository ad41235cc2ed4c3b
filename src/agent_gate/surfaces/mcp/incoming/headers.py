"""The headers in which a request is repeated; each must say what the body says."""

import re
from collections.abc import Mapping

from agent_gate.core.tool import Json, Tool
from agent_gate.mcp.errors import HEADER_MISMATCH, RpcError
from agent_gate.mcp.headers import METHOD, NAME, Mirror, field, mirrors, plain_text, unwrap, value_at
from agent_gate.net.http import Request

DECIMAL = re.compile(r"-?[0-9]{1,40}(\.0+)?")
MOST_REMEMBERED = 10_000
METHOD_FIELD, NAME_FIELD = field(METHOD), field(NAME)

Mirrors = tuple[tuple[bytes, Mirror], ...]


def mismatch(header: str, why: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"Header mismatch: {header} {why}")


def check_routing(request: Request, method: str, name: Json) -> None:
    """`Mcp-Method` and `Mcp-Name` against the body; `name` None means that the method has none."""
    if request.header(METHOD_FIELD) != method.encode():
        raise mismatch(METHOD, "does not repeat the body's method")
    if isinstance(name, str):
        said = request.header(NAME_FIELD)
        if said != name.encode() and unwrap(said) != name:
            raise mismatch(NAME, "does not repeat the name or uri in the body's params")


class ParamHeaders:
    """Checks `Mcp-Param-` headers; which ones a tool has is found once per definition."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Mirrors] = {}

    def check(self, request: Request, tool: Tool, arguments: Mapping[str, Json]) -> None:
        known = self._known.get((tool.id, tool.pin))
        if known is None:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            known = tuple((field(mirror.header), mirror) for mirror in mirrors(tool.input_schema))
            self._known[tool.id, tool.pin] = known
        for name, mirror in known:
            if not agrees(request.header(name), value_at(arguments, mirror.path), mirror.kind):
                raise mismatch(mirror.header, f"does not repeat the argument {'.'.join(mirror.path)}")


def agrees(header: bytes | None, value: Json, kind: str) -> bool:
    """Present together and equal, or absent together."""
    wanted = plain_text(value)
    if wanted is None:
        return header is None
    said = unwrap(header)
    if said is None:
        return False
    if kind == "integer" and not isinstance(value, bool | str) and DECIMAL.fullmatch(said):
        return bool(int(said.partition(".")[0]) == value)
    return said == wanted

"""Answers `GET /runtime/tools.ts`: the caller's part of the catalog as a module, made once per catalog and filter."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from hashlib import sha256
from typing import NamedTuple

from agent_gate.core.call import Caller
from agent_gate.core.catalog import Catalog
from agent_gate.core.tool import Tool
from agent_gate.errors import GatewayError, InvalidArgs
from agent_gate.net.http import Request, Response, error_response, refusal
from agent_gate.surfaces.typescript.module import ScriptServer, generate

PATH = "/runtime/tools.ts"
TYPESCRIPT = b"application/typescript"
MOST_MODULES = 64


class Module(NamedTuple):
    body: bytes
    etag: bytes


class TypeScriptSurface:
    """`identify` names the caller or raises `Unauthorized`; `visible` is what that caller's listings show."""

    def __init__(
        self,
        identify: Callable[[Request], Caller],
        catalog: Callable[[], Catalog],
        visible: Callable[[Caller], Sequence[Tool]],
    ) -> None:
        self._identify = identify
        self._catalog = catalog
        self._visible = visible
        self._modules: OrderedDict[Hashable, Module] = OrderedDict()

    async def handle(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return refusal(405, "INVALID_ARGS", f"{PATH} is read with GET", ((b"allow", b"GET, HEAD"),))
        try:
            module = self.module(self._identify(request), request.params())
        except GatewayError as error:
            return error_response(error)
        headers = (
            (b"etag", module.etag),
            (b"cache-control", b"private, no-cache"),
            (b"vary", b"authorization"),
            (b"x-content-type-options", b"nosniff"),
        )
        if request.header(b"if-none-match") == module.etag:
            return Response(304, headers=headers)
        return Response(200, module.body, headers, TYPESCRIPT)

    def module(self, caller: Caller, params: dict[str, str]) -> Module:
        """The module for this caller and filter, from memory where nothing it depends on has changed."""
        server, tool = params.get("server"), params.get("tool")
        if tool is not None and server is None:
            raise InvalidArgs(
                "The filter tool= needs server= beside it, because servers may share tool names. "
                f"Ask for {PATH}?server=NAME&tool=NAME"
            )
        servers = tuple(
            ScriptServer(entry.namespace, entry.key)
            for entry in self._catalog().listings.values()
            if caller.sees(entry.namespace)
        )
        tools = tuple(self._visible(caller))
        key = (tuple((one.id, one.pin, one.wire) for one in tools), servers, server, tool)
        return self._find_kept(key) or self._keep(key, generate(tools, servers, server=server, tool=tool))

    def _find_kept(self, key: Hashable) -> Module | None:
        if (module := self._modules.get(key)) is not None:
            self._modules.move_to_end(key)
        return module

    def _keep(self, key: Hashable, text: str) -> Module:
        body = text.encode()
        module = Module(body, f'"{sha256(body).hexdigest()[:32]}"'.encode())
        self._modules[key] = module
        while len(self._modules) > MOST_MODULES:
            self._modules.popitem(last=False)
        return module

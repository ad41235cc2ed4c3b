"""A gateway in miniature for the generated module: the real listener and TypeScript surface, and the REST shapes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from tests.waiting import PATIENCE

from agent_gate.core.call import Caller
from agent_gate.core.catalog import Catalog, Listing, build
from agent_gate.core.ids import fold_namespace
from agent_gate.core.tool import Definition
from agent_gate.errors import GatewayError, InvalidArgs, ToolNotFound, Unauthorized
from agent_gate.net.http import Request, Response, error_response, json_response
from agent_gate.net.server import Server
from agent_gate.surfaces.typescript.surface import TypeScriptSurface

TOKEN = "t0ken"


def tool(name: str, properties: dict[str, Any] | None = None, **more: Any) -> Definition:
    schema: dict[str, Any] = {"type": "object", "properties": properties or {}}
    if required := more.pop("required", None):
        schema["required"] = required
    return Definition(name=name, input_schema=more.pop("input_schema", schema), **more)


def catalog(servers: dict[str, Sequence[Definition]]) -> Catalog:
    return build(
        Listing(key=key, namespace=fold_namespace(key), definitions=definitions)
        for key, definitions in servers.items()
    )


Answer = Callable[[dict[str, Any]], Any]


@dataclass
class Gateway:
    """`answers` run a tool; a tool in `asked` first answers 202 until its event is set."""

    catalog: Catalog
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: dict[str, asyncio.Event] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    waiting: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    polled: asyncio.Event = field(default_factory=asyncio.Event)
    withdrawn: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    def identify(self, request: Request) -> Caller:
        if request.header(b"authorization") != f"Bearer {TOKEN}".encode():
            raise Unauthorized("The token is missing or wrong. Send Authorization: Bearer TOKEN")
        return Caller(name="script")

    async def handle(self, request: Request) -> Response:
        self.requests.append(request)
        if request.path == "/runtime/tools.ts":
            return await self.surface.handle(request)
        try:
            self.identify(request)
            return await self.rest(request)
        except GatewayError as error:
            return error_response(error)

    async def rest(self, request: Request) -> Response:
        kind, _, name = request.path.removeprefix("/api/").partition("/")
        if kind == "calls" and request.method == "DELETE":
            self.withdrawn.set()
            return json_response(200, {"call": name, "status": "withdrawn"})
        if kind == "calls":
            self.polled.set()
            wire, arguments = self.waiting[name]
            if not self.asked[wire].is_set() and request.params()["wait"] == "50":
                await asyncio.sleep(0.02)
                return json_response(202, {"call": name, "status": "pending", "expires_at": 1.0})
            return self.run(name, wire, arguments)
        return self.call(unquote(name), json.loads(request.body))

    def call(self, wire: str, arguments: dict[str, Any]) -> Response:
        if self.catalog.find(wire) is None:
            raise ToolNotFound(f"Unknown tool: {wire}")
        if wire in self.asked:
            self.waiting["c1"] = (wire, arguments)
            return json_response(202, {"call": "c1", "status": "pending", "expires_at": 1.0})
        return self.run("c0", wire, arguments)

    def run(self, call: str, wire: str, arguments: dict[str, Any]) -> Response:
        answer = self.answers.get(wire, lambda given: given)
        return json_response(200, {"call": call, "status": "executed", "data": answer(arguments)})

    @property
    def surface(self) -> TypeScriptSurface:
        if not hasattr(self, "_surface"):
            self._surface = TypeScriptSurface(
                self.identify, lambda: self.catalog, lambda caller: self.catalog.tools
            )
        return self._surface


def refuse(message: str) -> Answer:
    def answer(_: dict[str, Any]) -> Any:
        raise InvalidArgs(message, details={"errors": [message]})

    return answer


@asynccontextmanager
async def serving(gateway: Gateway) -> AsyncIterator[Gateway]:
    server = Server(gateway.handle)
    await server.start("127.0.0.1", 0)
    gateway.url = f"http://127.0.0.1:{server.port}"
    try:
        yield gateway
    finally:
        await server.drain(0)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


async def run(*argv: str, env: dict[str, str], cwd: str | None = None) -> Done:
    process = await asyncio.create_subprocess_exec(
        *argv, env=env, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    return Done(process.returncode or 0, out.decode(), err.decode())

"""A gateway inside the test's own event loop with a real HTTP API behind it, and a bare agent to talk to it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.gateway import OTHER_TOKEN, TOKEN, Api
from tests.waiting import until
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from agent_gate.app import Gateway
from agent_gate.config.options import Options
from agent_gate.core.approval import Answer, Approval
from agent_gate.surfaces.websocket import AgentLimits, Undelivered, WebSocketSurface

LIMITED_TOKEN = "token-of-the-limited-agent-in-tests"
NARROW_TOKEN = "token-of-the-narrow-agent-in-tests"
CONFIG = """
gateway: {{id: t, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents:
  first: {{token: {first}, rate_limit: {{max_requests_per_minute: 0, max_pending_approvals: 20}}}}
  other: {{token: {other}, rate_limit: {{max_requests_per_minute: 0}}}}
  limited: {{token: {limited}, rate_limit: {{max_requests_per_minute: 5, max_pending_approvals: 2}}}}
  narrow: {{token: {narrow}, namespaces: [elsewhere]}}
services:
  home:
    url: "{url}"
    auth: {{type: bearer, token: the-secret-of-the-service}}
    errors: [{{status: 404, message: "Entity not found"}}]
    tools:
      get_state:
        description: Get the state of an entity
        args: {{entity_id: {{required: true, validate: "^[a-z_.]+$", description: "Such as sensor.temp"}}}}
        signature: "{{entity_id}}"
        request: {{method: GET, path: "/states/{{entity_id}}"}}
      forecast:
        args: {{days: {{type: integer, default: 3}}, unit: {{enum: [c, f]}}, detailed: {{type: boolean}}}}
        request: {{method: GET, path: /forecast}}
      turn_on:
        args: {{entity_id: {{required: true}}}}
        signature: "{{entity_id}}"
        request: {{method: POST, path: /turn_on}}
      unlock: {{args: {{entity_id: {{required: true}}}}, signature: "{{entity_id}}", request: {{method: POST, path: /unlock}}}}
      secret_door: {{request: {{method: POST, path: /door}}}}
permissions: permissions.yaml
"""
PERMISSIONS = """
rules:
  - {pattern: "get_state(*)", action: allow}
  - {pattern: "forecast*", action: allow}
  - {pattern: "unlock(lock.front*)", action: deny}
  - {pattern: "secret_door", action: deny}
defaults: [{pattern: "*", action: ask}]
"""
ALLOWED = {"entity_id": "sensor.temp"}


def files(api: Api) -> dict[str, str]:
    tokens = {"first": TOKEN, "other": OTHER_TOKEN, "limited": LIMITED_TOKEN, "narrow": NARROW_TOKEN}
    config = CONFIG.format(url=api.url, **tokens)
    return {"config.yaml": config, "permissions.yaml": PERMISSIONS}


def write(folder: Path, api: Api) -> Path:
    for name, text in files(api).items():
        (folder / name).write_text(text)
    return folder / "config.yaml"


class Home:
    """The gateway, the API behind it, and a person at the terminal."""

    def __init__(self, gateway: Gateway, api: Api) -> None:
        self.gateway, self.api = gateway, api

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.gateway.listeners.public.port}"

    @property
    def open(self) -> list[Approval]:
        return self.gateway.kept.inbox.open()

    async def asked(self, count: int = 1) -> Approval:
        """The newest question, once there are `count` of them."""
        await until(lambda: len(self.open) >= count)
        return self.open[-1]

    async def answer(self, verdict: str = "approve", **said: Any) -> Approval:
        approval = await self.asked()
        return await self.gateway.calls.answer(
            approval.id, Answer(verdict=verdict, person="operator", channel="terminal", **said)
        )

    def executed(self, path: str) -> int:
        return sum(1 for request in self.api.requests if request["path"].partition("?")[0] == path)

    async def settled(self, path: str) -> None:
        """The API was called at `path` and no call runs any more."""
        await until(lambda: self.executed(path) and not self.gateway.calls.running())

    def limit(self, **limits: Any) -> None:
        """Serve new connections under other limits."""
        gateway = self.gateway
        surface = WebSocketSurface(
            calls=gateway.calls,
            door=gateway.ways_in.door,
            visible=gateway.ways_in.view.tools,
            keep=Undelivered(gateway.kept.store, gateway.supervisor.shelf, gateway.clock).keep,
            before=gateway.kept.predecessors,
            clock=gateway.clock,
            limits=AgentLimits(**limits),
        )
        gateway.ways_in.websocket, gateway.listeners.public.upgrade = surface, surface.upgrade

    @asynccontextmanager
    async def agent(self, token: str = TOKEN, **auth: Any) -> AsyncIterator["Wire"]:
        async with self.stranger() as wire:
            reply = await wire.ask("auth", {"token": token, "acknowledges": True, **auth}, ident="auth-1")
            assert reply["result"]["status"] == "authenticated"
            yield wire

    @asynccontextmanager
    async def stranger(self, path: str = "/", **options: Any) -> AsyncIterator["Wire"]:
        async with connect(self.url + path, compression=None, max_size=None, proxy=None, **options) as socket:
            yield Wire(socket)


class Wire:
    """An agent that speaks plain JSON-RPC and believes nothing."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.notified: list[dict[str, Any]] = []

    async def send(self, **message: Any) -> None:
        await self.socket.send(json.dumps({"jsonrpc": "2.0", **message}))

    async def request(self, tool: str, args: Any = None, *, ident: Any = 1, **params: Any) -> None:
        await self.send(id=ident, method="tool_request", params={"tool": tool, "args": args or {}, **params})

    async def reply(self) -> dict[str, Any]:
        """The next reply; notifications on the way are remembered."""
        while True:
            message = json.loads(await self.socket.recv())
            if "method" not in message:
                return message
            self.notified.append(message)

    async def ask(self, method: str, params: Any = None, *, ident: Any = 1) -> dict[str, Any]:
        await self.send(id=ident, method=method, params=params if params is not None else {})
        return await self.reply()

    async def call(self, tool: str, args: Any = None, *, ident: Any = 1, **params: Any) -> dict[str, Any]:
        await self.request(tool, args, ident=ident, **params)
        return await self.reply()

    async def closed(self) -> int:
        """The code with which the gateway closes."""
        while True:
            try:
                await self.socket.recv()
            except ConnectionClosed as error:
                return error.rcvd.code if error.rcvd is not None else 1006


@asynccontextmanager
async def started(folder: Path, api: Api) -> AsyncIterator[Home]:
    gateway = Gateway(Options(config=write(folder, api), insecure=True))
    gateway.settings.storage.path.absolute().parent.mkdir(parents=True, exist_ok=True)
    await gateway.start()
    try:
        await until(
            lambda: gateway.supervisor.shelf.catalog.find("get_state") and not gateway.supervisor.unready()
        )
        yield Home(gateway, api)
    finally:
        await gateway.stop()

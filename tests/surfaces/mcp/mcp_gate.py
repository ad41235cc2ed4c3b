"""A whole gateway in the test's own process, and the server of every feature to put behind it."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from tests.processes import free_port
from tests.waiting import until

from agent_gate.app import Gateway
from agent_gate.config.options import Options
from agent_gate.net.guard import HostGuard
from agent_gate.net.http import HttpAnswer, Request
from agent_gate.net.server import Server

TOKEN = "a-token-for-tests-0123456789"
OTHER_TOKEN = "another-token-for-tests-0123456789"
CONFORMANCE = Path(__file__).resolve().parent.parent.parent / "conformance" / "fixture.py"
ALLOW_ALL = "defaults: [{pattern: '*', action: allow}]\nrules: []\n"


def config_text(servers: Mapping[str, Any], **more: Any) -> str:
    """A configuration as JSON, which YAML reads too."""
    agents = {
        "tester": {"token": TOKEN, "rate_limit": {"max_requests_per_minute": 0}},
        "other": {"token": OTHER_TOKEN, "rate_limit": {"max_requests_per_minute": 0}},
    }
    whole = {
        "agents": agents,
        "gateway": {"port": 0},
        "admin": {"socket": "./run/admin.sock", "port": 0},
        "storage": {"type": "sqlite", "path": "./data/gate.db"},
        "servers": dict(servers),
        "permissions": "permissions.yaml",
        **more,
    }
    return msgspec.json.encode({key: value for key, value in whole.items() if value}).decode()


class Gate:
    """`url` wants a token; `open_url` adds the tester's own, for clients that cannot send one."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.open_server = Server(self._with_token)

    async def start(self) -> None:
        await self.open_server.start("127.0.0.1", 0)
        self.open_server.guard = HostGuard(["127.0.0.1"], self.open_server.port)

    def _with_token(self, request: Request) -> HttpAnswer | Awaitable[HttpAnswer]:
        fields = {**request.fields, b"authorization": f"Bearer {TOKEN}".encode()}
        inner = Request(request.method, request.target, fields, body=request.body, peer=request.peer)
        inner.opener = request.opener
        request.on_disconnect(inner.lost)
        return self.gateway.ways_in.mcp.handle(inner)

    @property
    def url(self) -> str:
        return f"{self.gateway.listeners.url()}/mcp"

    @property
    def open_url(self) -> str:
        return f"http://127.0.0.1:{self.open_server.port}/mcp"


@contextlib.asynccontextmanager
async def running_gate(folder: Path, config: str, permissions: str = ALLOW_ALL) -> AsyncIterator[Gate]:
    """Start a gateway from these files; wait until every eager source is connected."""
    (folder / "config.yaml").write_text(config)
    (folder / "permissions.yaml").write_text(permissions)
    gateway = Gateway(Options(config=folder / "config.yaml", port=0, insecure=True))
    await gateway.start()
    gate = Gate(gateway)
    await gate.start()
    try:
        await ready(gateway)
        yield gate
    finally:
        await gateway.ways_in.mcp.close(2.0)
        await gate.open_server.drain(0.5)
        await gateway.stop()


async def ready(gateway: Gateway) -> None:
    await until(lambda: not gateway.supervisor.unready())


@contextlib.asynccontextmanager
async def http_fixture() -> AsyncIterator[str]:
    """The conformance fixture as a server over HTTP; its URL."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CONFORMANCE), "http", str(port), stdin=asyncio.subprocess.DEVNULL
    )
    try:
        await listening(port, process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def listening(port: int, process: asyncio.subprocess.Process) -> None:
    async def is_reached() -> bool:
        assert process.returncode is None, "the fixture did not start"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            return False
        writer.close()
        return True

    await until(is_reached, "the fixture's first connection")


def fixture_over_http(url: str) -> dict[str, Any]:
    return {"fixture": {"type": "remote-mcp", "url": url, "prefix": False}}


def fixture_over_stdio() -> dict[str, Any]:
    args = [str(CONFORMANCE), "stdio"]
    return {"fixture": {"type": "stdio-mcp", "command": sys.executable, "args": args, "prefix": False}}

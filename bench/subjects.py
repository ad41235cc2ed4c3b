"""Who is measured: the gateway with its configuration, the limit, and the peers that install."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests import postgres

from bench.load import TOKEN, Ask
from bench.machine import CACHE, HERE, LOADED, SERVED, built, free_port, running

AGENT_GATE = Path(sys.executable).with_name("agent-gate")
NOTHING: Mapping[str, Any] = {}
TOOLS = {
    "api_echo": {
        "description": "Returns the text",
        "args": {"text": {"required": True, "text": True}},
        "request": {"method": "POST", "path": "/api/echo"},
    }
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A running program: its process, its port, and when it was started (monotonic)."""

    pid: int
    port: int
    started: float
    log: Path


def remote(upstream: int, path: str = "/mcp", **more: Any) -> dict[str, Any]:
    return {"type": "remote-mcp", "url": f"http://127.0.0.1:{upstream}{path}", **more}


def stdio(**more: Any) -> dict[str, Any]:
    return {"type": "stdio-mcp", "command": str(built("upstream")), "args": ["stdio"], **more}


def call_servers(upstream: int) -> dict[str, Any]:
    """The servers of the calls that are compared: over HTTP, over stdio, and with the record written behind."""
    behind: dict[str, Any] = {"record": "behind", "traits": {"read_only": True}}
    return {
        "http": remote(upstream),
        "child": stdio(),
        "behind": remote(upstream, **behind),
        "childbehind": stdio(**behind),
    }


def write_config(
    folder: Path, servers: Mapping[str, Any], upstream: int | None, more: Mapping[str, Any] = NOTHING
) -> Path:
    """A gateway that governs every call: a token, a rule, a schema, a durable row before each.

    `more` is added to the configuration, section by section."""
    agent = {"token": TOKEN, "rate_limit": {"max_requests_per_minute": 0}}
    config: dict[str, Any] = {
        "gateway": {"id": "bench", "port": free_port()},
        "admin": {"socket": "./data/admin.sock", "port": 0},
        "agents": {"bench": agent},
        "servers": dict(servers),
        "permissions": "permissions.yaml",
    }
    if upstream is not None:
        health = {"path": "/mcp", "expect_status": 405}
        service = {"url": f"http://127.0.0.1:{upstream}", "tools": "tools.yaml", "health": health}
        config["services"] = {"api": service}
    for section, entries in more.items():
        config[section] = {**config.get(section, {}), **entries}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(json.dumps(config))
    (folder / "tools.yaml").write_text(json.dumps({"tools": TOOLS}))
    (folder / "permissions.yaml").write_text('rules: [{pattern: "*", action: allow}]\n')
    return folder / "config.yaml"


@contextmanager
def gateway(
    servers: Mapping[str, Any],
    upstream: int | None = None,
    *,
    more: Mapping[str, Any] = NOTHING,
    files: Mapping[str, Any] = NOTHING,
    options: Sequence[str] = (),
    name: str = "gateway",
    cores: set[int] = SERVED,
    env: Mapping[str, str] = NOTHING,
) -> Iterator[Subject]:
    """`files` are written beside the configuration, as JSON; `options` are those of `serve`."""
    folder, log = CACHE / name, CACHE / f"{name}.log"
    config = write_config(folder, servers, upstream, more)
    for name, held in files.items():
        (folder / name).write_text(json.dumps(held))
    port = json.loads(config.read_text())["gateway"]["port"]
    command = [AGENT_GATE, "serve", "--config", config, "--insecure", *options]
    began = time.monotonic()
    with running(command, cores, log, dict(env)) as child:
        yield Subject(child.pid, port, began, log)


@contextmanager
def paired_host(subject: Subject) -> Iterator[None]:
    """A tool host of its own process, paired with the gateway as `paired`."""
    socket = ("--admin-socket", CACHE / "gateway" / "data" / "admin.sock")
    log, state = CACHE / "host.log", CACHE / "host"
    shutil.rmtree(state, ignore_errors=True)
    key = operated("identity", *socket, until=subject.started + 60)
    listen = ("--listen", f"127.0.0.1:{free_port()}", "--gateway-key", key, "--state", state)
    command = [AGENT_GATE, "host", "run", HERE / "echo_host.py:host", "--name", "paired", *listen]
    with running(command, LOADED, log):
        while not (told := log.read_text().partition("\n"))[1]:
            time.sleep(0.02)
        said = json.loads(told[0])
        operated("pair", "tool", said["url"], "paired", "--remote-fingerprint", said["fingerprint"], *socket)
        yield


def operated(*words: object, until: float = 0.0) -> str:
    """What an operator command prints; tried again until the gateway is there."""
    command = [str(word) for word in (AGENT_GATE, *words)]
    while True:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
        if time.monotonic() > until:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        time.sleep(0.1)


@contextmanager
def upstream_server(cores: set[int]) -> Iterator[int]:
    port = free_port()
    with running([built("upstream"), port], cores, CACHE / "upstream.log"):
        yield port


@contextmanager
def postgres_server(cores: set[int]) -> Iterator[str]:
    """A PostgreSQL as it is installed, fsync and all; the address of an empty database."""
    binaries = postgres.find_binaries()
    if binaries is None:
        raise SystemExit(
            "The stores are compared with a real PostgreSQL: install its server, then run this again."
        )
    server = postgres.Server(binaries)
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        server.start(durable=True)
    finally:
        os.sched_setaffinity(0, ours)
    try:
        yield server.new_database()
    finally:
        server.remove()


class TokenDesk(BaseHTTPRequestHandler):
    """Gives everybody the same token, good for an hour."""

    def do_POST(self) -> None:
        body = json.dumps({"access_token": "t" * 40, "token_type": "Bearer", "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_said: object) -> None:
        pass


@contextmanager
def token_desk() -> Iterator[str]:
    """Where a gateway gets a token for itself; its address."""
    with HTTPServer(("127.0.0.1", 0), TokenDesk) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/token"
        server.shutdown()


@dataclass(frozen=True, slots=True)
class Peer:
    """Another program before the same upstream. `needs` is installed into a folder of its own under the cache."""

    name: str
    command: Sequence[str]
    needs: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    tool: str = "echo"
    makes_token: bool = False

    @property
    def token_file(self) -> Path:
        return CACHE / f"{self.name.replace(' ', '-')}.token"

    def ask(self) -> Ask:
        """A call of its tool; one that makes its own token is waited for."""
        if not self.makes_token:
            return Ask("/mcp", self.tool)
        give_up = time.monotonic() + 120
        while not (self.token_file.exists() and self.token_file.read_text()):
            if time.monotonic() > give_up:
                raise SystemExit(f"{self.name} made no token in two minutes")
            time.sleep(0.1)
        return Ask("/mcp", self.tool, token=self.token_file.read_text())

    def python(self) -> Path:
        """Its interpreter; without needs, this one, which has the official SDK for the tests."""
        if not self.needs:
            return Path(sys.executable)
        home = CACHE / self.name.replace(" ", "-")
        if not (home / "installed").exists():
            shutil.rmtree(home, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
            install = [home / "bin" / "python", "-m", "pip", "install", "--quiet", *self.needs]
            subprocess.run([str(part) for part in install], check=True, capture_output=True)
            (home / "installed").touch()
        return home / "bin" / "python"

    @contextmanager
    def started(self, upstream: int) -> Iterator[Subject]:
        port, python = free_port(), self.python()
        names = {
            "PYTHON": str(python),
            "BIN": str(python.parent),
            "PORT": str(port),
            "URL": f"http://127.0.0.1:{upstream}/mcp",
            "UPSTREAM": str(upstream),
            "STDIO": str(built("upstream")),
            "TOKEN": str(self.token_file),
        }
        self.token_file.unlink(missing_ok=True)
        command = [part.format(**names) for part in self.command]
        began, log = time.monotonic(), CACHE / f"{self.name.replace(' ', '-')}.log"
        with running(command, SERVED, log, dict(self.env)) as child:
            yield Subject(child.pid, port, began, log)


RAW = Peer("raw proxy", ("{PYTHON}", str(HERE / "raw_proxy.py"), "{PORT}", "{UPSTREAM}"))
SDK = Peer("SDK proxy", ("{PYTHON}", str(HERE / "sdk_proxy.py"), "{PORT}", "{URL}"))
OTHERS = (
    Peer(
        "FastMCP shared client",
        ("{PYTHON}", str(HERE / "fastmcp_proxy.py"), "{PORT}", "{URL}"),
        ("fastmcp", "uvloop"),
    ),
    Peer(
        "FastMCP create_proxy",
        ("{PYTHON}", str(HERE / "fastmcp_proxy.py"), "{PORT}", "{URL}", "fresh"),
        ("fastmcp", "uvloop"),
    ),
    Peer(
        "mcp-proxy",
        ("{BIN}/mcp-proxy", "--stateless", "--port", "{PORT}", "--", "{STDIO}", "stdio"),
        ("mcp-proxy",),
    ),
    Peer(
        "ContextForge",
        ("{PYTHON}", str(HERE / "contextforge.py"), "{PORT}", "{URL}", "{TOKEN}"),
        ("mcp-contextforge-gateway",),
        tool="up-echo",
        makes_token=True,
    ),
)

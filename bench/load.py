"""Requests as bytes, the load generator around them, and CPU per call of whoever answers."""

import http.client
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.machine import CACHE, LOADED, built, cpu_us

TOKEN = "bench-token-bench-token-bench-token"
MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"
CAPABILITIES: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
HOLE = "@@@@@@@@"
HELLO = {"text": f"hello {HOLE} world"}


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: where it goes and what it carries; `era` empty means that it is no MCP."""

    path: str
    tool: str = ""
    era: str = HANDSHAKE
    arguments: Any = None
    session: str = ""
    token: str = TOKEN

    @property
    def headers(self) -> dict[str, str]:
        found = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.era:
            found["MCP-Protocol-Version"] = self.era
        if self.era == MODERN:
            found["Mcp-Method"] = "tools/call" if self.tool else "tools/list"
            found |= {"Mcp-Name": self.tool} if self.tool else {}
        return found | ({"Mcp-Session-Id": self.session} if self.session else {})

    @property
    def body(self) -> str:
        arguments = self.arguments if self.arguments is not None else HELLO
        if not self.era:
            return json.dumps(arguments)
        meta: dict[str, Any] = {"progressToken": 1}
        if self.era == MODERN:
            prefix = "io.modelcontextprotocol/"
            meta |= {f"{prefix}protocolVersion": MODERN, f"{prefix}clientCapabilities": CAPABILITIES}
        params: dict[str, Any] = {"_meta": meta}
        if self.tool:
            params |= {"name": self.tool, "arguments": arguments}
        method = "tools/call" if self.tool else "tools/list"
        text = json.dumps({"jsonrpc": "2.0", "id": 0, "method": method, "params": params})
        return text.replace('"id": 0', f'"id": {HOLE}')

    def bytes(self, port: int) -> bytes:
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        head = f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{lines}"
        return f"{head}Content-Length: {len(self.body)}\r\n\r\n{self.body}".encode()


def post(port: int, path: str, body: str, headers: dict[str, str]) -> tuple[int, bytes, str]:
    """Status, body and session of one request; the last event of a stream is its body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        data = response.read()
        events = [line[5:] for line in data.splitlines() if line.startswith(b"data:")]
        session = response.headers.get("Mcp-Session-Id") or ""
        return response.status, events[-1] if events else data, session
    finally:
        connection.close()


def initialize(port: int, path: str = "/mcp") -> str:
    """Open a session as a client with every capability; empty where the server keeps none."""
    headers = {name: value for name, value in Ask(path).headers.items() if name != "MCP-Protocol-Version"}
    hello = {
        "protocolVersion": HANDSHAKE,
        "capabilities": CAPABILITIES,
        "clientInfo": {"name": "bench", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    status, data, session = post(port, path, json.dumps(message), headers)
    if status != 200 or b'"result"' not in data:
        raise OSError(f"initialize was answered with {status} {data[:200]!r}")
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    post(port, path, json.dumps(done), Ask(path, session=session).headers)
    return session


def first_answer(port: int, ask: Ask, seconds: float = 60.0, mark: bytes = b"hello") -> float:
    """Wait until the request is answered well; how long that took."""
    began, said = time.monotonic(), ""
    while time.monotonic() - began < seconds:
        try:
            status, data, _ = post(port, ask.path, ask.body.replace(HOLE, "12345678"), ask.headers)
            if status == 200 and mark in data:
                return time.monotonic() - began
            said = f"{status} {data[:300]!r}"
        except (OSError, http.client.HTTPException) as error:
            said = repr(error)
        time.sleep(0.02)
    raise SystemExit(f"No good answer on port {port} for {ask}: {said}")


def drive(
    port: int, ask: Ask, connections: int, seconds: float, mark: str = "hello", rate: float = 0
) -> "subprocess.Popen[str]":
    """Start the load generator; its output is one line of JSON."""
    request = Path(CACHE / f"{port}-{abs(hash((ask.path, ask.tool, ask.era)))}.request")
    request.write_bytes(ask.bytes(port))
    command = [built("load"), port, connections, seconds, request, mark, *([rate] if rate else [])]
    cores = ",".join(map(str, LOADED))
    pinned = ["taskset", "-c", cores, *map(str, command)]
    return subprocess.Popen(pinned, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(load: "subprocess.Popen[str]") -> dict[str, Any]:
    out, err = load.communicate()
    found: dict[str, Any] = json.loads(out)
    if found["bad"] or not found["calls"]:
        raise SystemExit(f"Answers were wrong: {found} {err[:600]}")
    return found


def measure(
    pid: int, port: int, ask: Ask, connections: int, seconds: float, mark: str = "hello"
) -> dict[str, float]:
    """CPU per call of the process tree `pid`, and how the calls went; every answer was checked."""
    before = cpu_us(pid)
    found = outcome(drive(port, ask, connections, seconds, mark))
    calls = found["calls"]
    return {
        "cpu_us": round((cpu_us(pid) - before) / calls, 1),
        "calls_per_second": round(calls / found["seconds"]),
        "p50_ms": found["p50_ms"],
        "p99_ms": found["p99_ms"],
    }

"""A real gateway before an HTTP API and three MCP servers, every one of which writes down what reached it."""

import json
import sys
from contextlib import contextmanager
from pathlib import Path

from tests.gateway import OTHER_TOKEN, TOKEN, running
from tests.waiting import PATIENCE, wait_until
from websockets.sync.client import connect

UPSTREAM = Path(__file__).with_name("upstream.py")
SERVICE_SECRET = "the-secret-of-the-service"
SERVER_SECRET = "the-secret-of-the-mcp-server"
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOOLS = """
tools:
  get_state:
    args: {entity_id: {required: true, validate: "^[a-z_.]+$"}}
    signature: "{entity_id}"
    request: {method: GET, path: "/states/{entity_id}"}
  set_level:
    args: {room: {required: true}, level: {type: integer, required: true}}
    signature: "{room}, {level}"
    request: {method: POST, path: /level}
  act:
    args: {what: {required: true}, note: {text: true}}
    signature: "{what}"
    request: {method: POST, path: /act}
    ask: "Do {what}? Note: {note}"
  bury:
    args: {what: {required: true}}
    signature: "{what}"
    request: {method: POST, path: /bury}
"""
PERMISSIONS = """
rules:
  - {pattern: "get_state(*)", action: allow}
  - {pattern: "set_level(cellar, 5)", action: deny}
  - {pattern: "set_level(*)", action: deny, when: {level: 7}}
  - {pattern: "set_level(*)", action: allow}
  - {pattern: "bury*", action: deny}
  - {pattern: "box__push(*branch=main*)", action: deny}
  - {pattern: "box__*", action: allow}
  - {pattern: "other__*", action: allow}
  - {pattern: "far__*", action: allow}
defaults: [{pattern: "*", action: ask}]
"""


def files(folder, recorder):
    def child(name):
        return {
            "command": sys.executable,
            "args": ["-I", str(UPSTREAM), str(folder / f"{name}.ledger"), recorder.url],
            "env": {f"{name.upper()}_KEY": f"the-key-of-{name}"},
        }

    free = {"rate_limit": {"max_requests_per_minute": 0, "max_pending_approvals": 50}}
    config = {
        "gateway": {"id": "t", "port": 0},
        "admin": {"port": 0, "socket": "./data/admin.sock"},
        "agents": {
            "first": {"token": TOKEN, **free},
            "second": {"token": OTHER_TOKEN, **free},
        },
        "services": {
            "home": {
                "url": recorder.url,
                "tools": "tools.yaml",
                "auth": {"type": "bearer", "token": SERVICE_SECRET},
            }
        },
        "servers": {
            "far": {
                "type": "http",
                "url": f"{recorder.url}/far/mcp",
                "headers": {"X-Api-Key": SERVER_SECRET},
            },
        },
        "mcpServers": {"box": child("box"), "other": child("other")},
        "limits": {"hold": 0.2},
        "permissions": "permissions.yaml",
    }
    return {"config.yaml": json.dumps(config), "permissions.yaml": PERMISSIONS, "tools.yaml": TOOLS}


def far_server(handler, body):
    """A small MCP server over HTTP of the handshake era."""
    message = json.loads(body) if body else {}
    method = message.get("method")
    if handler.command != "POST" or "id" not in message:
        return (202 if handler.command == "POST" else 405), {}, b""
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}},
        "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "far"}]},
    }
    if method not in results:
        error = {"code": -32601, "message": "no such method"}
        return 404, {}, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
    return 200, {}, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[method]}).encode()


class House:
    """The gateway, what its upstreams saw, and the ways in."""

    def __init__(self, gateway, recorder, folder):
        self.gateway, self.recorder, self.folder = gateway, recorder, folder

    def forget(self):
        """Start a test with nothing seen."""
        self.recorder.reset()
        self.recorder.replies["/far/mcp"] = far_server
        for ledger in self.folder.glob("*.ledger"):
            ledger.write_text("")

    def settle(self):
        """Deny what a test left open, so that the next one starts without questions."""
        for approval in self.gateway.admin.get("/api/approvals"):
            self.gateway.admin.request("POST", f"/api/approvals/{approval['id']}", {"verdict": "deny"})

    def reached(self):
        """Every call that any upstream got."""
        calls = [request for request in self.recorder.requests if request["path"] != "/far/mcp"]
        calls += [r for r in self.recorder.requests if b"tools/call" in r["body"]]
        for ledger in self.folder.glob("*.ledger"):
            calls += ledger.read_text().splitlines()
        return calls

    def rows(self, **wanted):
        """Rows of the record with these values, newest first."""
        rows = self.gateway.admin.get("/api/calls?limit=500")["rows"]
        return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]

    def modern(self, name, arguments=None, *, path="/mcp/full", token=TOKEN, ident=1, **params):
        """One `tools/call` of the stateless revision; the JSON-RPC message that answers it."""
        named = {"name": name, "arguments": arguments or {}, "_meta": META, **params}
        message = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": named}
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": name,
        }
        reply = self.gateway.request("POST", path, message, token=token, headers=headers)
        if reply.headers.get("content-type") != "text/event-stream":
            return reply.json
        return json.loads(reply.body.decode().rpartition("data: ")[2])

    @contextmanager
    def socket(self, token=TOKEN):
        """An authenticated WebSocket."""
        with connect(self.gateway.url.replace("http", "ws", 1), proxy=None, compression=None) as made:
            made.send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "auth", "params": {"token": token}}))
            assert "error" not in json.loads(made.recv(PATIENCE))
            yield made

    def said(self, tool, args, *, ident=1, token=TOKEN, **params):
        """One `tool_request` over a WebSocket of its own."""
        with self.socket(token) as socket:
            asked = {"tool": tool, "args": args, **params}
            socket.send(
                json.dumps({"jsonrpc": "2.0", "id": ident, "method": "tool_request", "params": asked})
            )
            return json.loads(socket.recv(PATIENCE))


@contextmanager
def house(folder, recorder):
    recorder.replies["/far/mcp"] = far_server
    with running(folder, files(folder, recorder), "--insecure") as gateway:
        wait_until(lambda: gateway.request("GET", "/ready", token=None).status == 200)
        yield House(gateway, recorder, folder)

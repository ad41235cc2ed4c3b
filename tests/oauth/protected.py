"""An MCP server behind the authorization server: it answers only those whose token that one calls good."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from tests.http_server import HttpServer, QuietHandler
from tests.oauth.authority import connection_to

from agent_gate.net.tls.files import CertificateFiles, server_context

TOOLS = [
    {"name": name, "description": f"Does {name}", "inputSchema": {"type": "object"}}
    for name in ("list_notes", "read_note", "add_note")
]


class ProtectedServer:
    """`tokens` are those it was shown, in order; `path` is where it speaks MCP. Each session is one account's: in
    `mixed` are the accounts that came with the session of another."""

    path = "/mcp"

    def __init__(self, issuer: str, tls: CertificateFiles | None = None) -> None:
        self.issuer, self.tokens = issuer, []  # type: str, list[str]
        self.sessions: dict[str, str] = {}
        self.mixed: list[tuple[str, str]] = []
        server = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == f"/.well-known/oauth-protected-resource{server.path}":
                    return self.send(200, server.description())
                return self.send(404 if server.allows(self) else 401, {}, server.challenge())

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                if not server.allows(self):
                    return self.send(401, {"error": "no token"}, server.challenge())
                account = server.account(server.tokens[-1])
                known = server.sessions.get(self.headers.get("Mcp-Session-Id", ""), account)
                if known != account:
                    server.mixed.append((known, account))
                if "id" not in body:
                    return self.send(202, None)
                answer = {"jsonrpc": "2.0", "id": body["id"], **server.answer(body, account)}
                return self.send(200, answer, server.session_for(body, account))

            def send(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
                data = b"" if value is None else json.dumps(value).encode()
                self.send_response(status)
                for name, text in {"Content-Type": "application/json", **(headers or {})}.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = HttpServer(Handler, tls=server_context(tls.cert, tls.key) if tls else None)
        self.origin = self._server.url
        self.url = f"{self.origin}{self.path}"

    def close(self) -> None:
        self._server.close()

    def description(self) -> dict[str, Any]:
        return {
            "resource": self.url,
            "authorization_servers": [self.issuer],
            "scopes_supported": ["openid", "email", "mcp:read"],
        }

    def challenge(self) -> dict[str, str]:
        document = f"{self.origin}/.well-known/oauth-protected-resource{self.path}"
        return {"WWW-Authenticate": f'Bearer resource_metadata="{document}"'}

    def allows(self, request: QuietHandler) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer":
            return False
        self.tokens.append(token)
        return self.is_good(token)

    def session_for(self, body: dict[str, Any], account: str) -> dict[str, str]:
        """A session of its own for each `initialize`."""
        if body["method"] != "initialize":
            return {}
        number = f"session-{len(self.sessions)}"
        self.sessions[number] = account
        return {"Mcp-Session-Id": number}

    def is_good(self, token: str) -> bool:
        return bool(self.introspect(token)["active"])

    def account(self, token: str) -> str:
        return str(self.introspect(token).get("sub"))

    def introspect(self, token: str) -> dict[str, Any]:
        connection = connection_to(self.issuer)
        connection.request("GET", f"/test/token?token={quote(token)}")
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return found

    def answer(self, body: dict[str, Any], account: str) -> dict[str, Any]:
        method = body["method"]
        if method == "initialize":
            about = {"name": "notes", "version": "1"}
            version = body["params"]["protocolVersion"]
            return {
                "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            }
        if method == "tools/list":
            return {"result": {"tools": TOOLS}}
        if method == "tools/call":
            return {
                "result": {
                    "content": [{"type": "text", "text": f"did {body['params']['name']} for {account}"}]
                }
            }
        return {"error": {"code": -32601, "message": "unknown"}}


@contextmanager
def protected_server(issuer: str, tls: CertificateFiles | None = None) -> Iterator[ProtectedServer]:
    made = ProtectedServer(issuer, tls)
    try:
        yield made
    finally:
        made.close()

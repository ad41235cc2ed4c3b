"""A connector of a vendor's cloud, as its makers document it: VENDOR URL FOLDER, the last with its certificate.

It serves its own document and its callback over TLS, reads what the gateway says of itself, and uses what it got. Prints
`OPEN <address>` where a person needs a browser, then `TOOLS [...]`, and `REFRESHED [...]` with the next token. Without a
URL it only serves, until its input ends.
"""

import base64
import hashlib
import json
import re
import secrets
import ssl
import sys
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen


@dataclass(frozen=True)
class Vendor:
    """`guesses`: it reads no document of the gateway, and takes the endpoints for granted. `elsewhere` are addresses
    outside its cloud that its document lists."""

    host: str
    document: str
    callback: str
    name: str
    guesses: bool = False
    elsewhere: tuple[str, ...] = ()


VENDORS = {
    "claude": Vendor("claude.ai", "/oauth/mcp-oauth-client-metadata", "/api/mcp/auth_callback", "Claude"),
    "chatgpt": Vendor("chatgpt.com", "/oauth/client.json", "/connector_platform_oauth_redirect", "ChatGPT"),
    "claude-code": Vendor(
        "claude.ai",
        "/oauth/claude-code-client-metadata",
        "/none",
        "Claude Code",
        elsewhere=("http://localhost/callback", "http://127.0.0.1/callback"),
    ),
    "guesser": Vendor("claude.ai", "", "/api/mcp/auth_callback", "Claude", guesses=True),
}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "cloud", "version": "1"}}


class Cloud:
    """The vendor's own address: its document, and where browsers come back to."""

    def __init__(self, vendor, folder):
        answers, self.came = {}, Queue()
        self.id, self.callback = (
            f"https://{vendor.host}{vendor.document}",
            f"https://{vendor.host}{vendor.callback}",
        )
        document = {
            "client_id": self.id,
            "client_name": vendor.name,
            "redirect_uris": list(vendor.elsewhere) or [self.callback],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
        }
        answers[vendor.document] = json.dumps(document).encode()
        came = self.came

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                parts = urlsplit(self.path)
                if parts.path == vendor.callback:
                    came.put({name: values[0] for name, values in parse_qs(parts.query).items()})
                body = answers.get(parts.path, b"{}")
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer((vendor.host, 443), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "gateway.crt", folder / "gateway.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()


class Connector:
    def __init__(self, vendor, url, folder):
        self.vendor, self.url, self.cloud = vendor, url, Cloud(vendor, folder)
        self.trust = ssl.create_default_context(cafile=folder / "ca.crt")
        self.verifier, self.state = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
        self.resource, self.issuer, self.tokens, self.session = None, None, {}, None

    def send(self, url, body=None, **headers):
        try:
            with urlopen(Request(url, body, headers), context=self.trust, timeout=20) as reply:
                return reply.status, reply.headers, reply.read()
        except HTTPError as refused:
            return refused.code, refused.headers, refused.read()

    def get_json(self, url):
        status, _, body = self.send(url)
        assert status == 200, (url, status, body)
        return json.loads(body)

    def discover(self):
        """The challenge, then the path's document, then the first server that it names."""
        status, headers, _ = self.rpc("initialize", HELLO)
        assert status == 401, status
        if self.vendor.guesses:
            origin = self.url.removesuffix("/mcp")
            return {name: f"{origin}/{path}" for name, path in GUESSED.items()}
        place = re.search(r'resource_metadata="(https://[^"]+)"', headers["WWW-Authenticate"])[1]
        protected = self.get_json(place)
        assert protected["resource"] == self.url
        self.resource, self.issuer = protected["resource"], protected["authorization_servers"][0]
        server = self.get_json(f"{self.issuer}/.well-known/oauth-authorization-server")
        assert server["issuer"] == self.issuer
        assert "S256" in server["code_challenge_methods_supported"]
        assert server["authorization_response_iss_parameter_supported"]
        return server

    def identify(self, server):
        """By its document where the gateway reads them and wants no secret, else by registering."""
        if (
            server.get("client_id_metadata_document_supported")
            and "none" in server["token_endpoint_auth_methods_supported"]
        ):
            return self.cloud.id
        asked = {
            "client_name": self.vendor.name,
            "redirect_uris": [self.cloud.callback],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        address, kind = server["registration_endpoint"], {"Content-Type": "application/json"}
        status, _, body = self.send(address, json.dumps(asked).encode(), **kind)
        assert status == 201, body
        return json.loads(body)["client_id"]

    def authorize(self, server, client_id):
        digest = hashlib.sha256(self.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": self.cloud.callback,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
            "state": self.state,
            **({"resource": self.resource, "scope": "mcp"} if self.resource else {}),
        }
        print("OPEN", f"{server['authorization_endpoint']}?{urlencode(asked)}", flush=True)
        told = self.cloud.came.get(timeout=60)
        assert told["state"] == self.state
        assert self.issuer is None or told["iss"] == self.issuer
        return told["code"]

    def take_tokens(self, server, client_id, **grant):
        form = {"client_id": client_id, **grant, **({"resource": self.resource} if self.resource else {})}
        status, _, body = self.send(server["token_endpoint"], urlencode(form).encode())
        assert status == 200, body
        self.tokens = json.loads(body)

    def rpc(self, method, params, number=1):
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens['access_token']}"
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25"}
        return self.send(self.url, json.dumps(message).encode(), **headers)

    def list_tools(self):
        status, _, body = self.rpc("tools/list", {}, 2)
        assert status == 200, body
        return json.dumps([tool["name"] for tool in json.loads(body)["result"]["tools"]])

    def run(self):
        server = self.discover()
        client_id = self.identify(server)
        code = self.authorize(server, client_id)
        grant = {"code": code, "redirect_uri": self.cloud.callback, "code_verifier": self.verifier}
        self.take_tokens(server, client_id, grant_type="authorization_code", **grant)
        _, headers, _ = self.rpc("initialize", HELLO)
        self.session = headers["Mcp-Session-Id"]
        self.rpc("notifications/initialized", {}, None)
        print("TOOLS", self.list_tools(), flush=True)
        again = self.tokens["refresh_token"]
        self.take_tokens(server, client_id, grant_type="refresh_token", refresh_token=again)
        print("REFRESHED", self.list_tools(), flush=True)


GUESSED = {
    "authorization_endpoint": "authorize",
    "token_endpoint": "token",
    "registration_endpoint": "register",
}

if __name__ == "__main__":
    chosen, given = VENDORS[sys.argv[1]], Path(sys.argv[3])
    if sys.argv[2]:
        Connector(chosen, sys.argv[2], given).run()
    else:
        print("SERVING", Cloud(chosen, given).id, flush=True)
        sys.stdin.read()

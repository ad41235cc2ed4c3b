"""Signs in with the Python SDK's own OAuth client and lists tools: URL, the file that keeps its tokens, a port. With the
name of a tool and its arguments in JSON it calls that too.

Prints `OPEN <address>` where a browser is needed, `TOOLS [...]`, and `CALLED {...}` with what a call ended in.
"""

import asyncio
import json
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

URL, KEPT, PORT = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
CALLBACK = f"http://127.0.0.1:{PORT}/callback"


class FileStorage:
    def read(self, name, kind):
        found = json.loads(KEPT.read_text()).get(name) if KEPT.exists() else None
        return kind.model_validate(found) if found else None

    def write(self, name, value):
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        KEPT.write_text(json.dumps(kept | {name: value.model_dump(mode="json", exclude_none=True)}))

    async def get_tokens(self):
        return self.read("tokens", OAuthToken)

    async def set_tokens(self, tokens):
        self.write("tokens", tokens)

    async def get_client_info(self):
        return self.read("client", OAuthClientInformationFull)

    async def set_client_info(self, client_info):
        self.write("client", client_info)


async def callback():
    """The one request that the browser brings back."""
    came = asyncio.get_running_loop().create_future()

    async def answer(reader, writer):
        line = (await reader.readline()).decode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ndone")
        await writer.drain()
        writer.close()
        said = {name: values[0] for name, values in parse_qs(urlsplit(line.split()[1]).query).items()}
        if "code" in said and not came.done():
            came.set_result(said)

    server = await asyncio.start_server(answer, "127.0.0.1", PORT)
    try:
        said = await came
    finally:
        server.close()
    return AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))


async def show(address):
    print("OPEN", address, flush=True)


async def main():
    provider = OAuthClientProvider(
        URL,
        OAuthClientMetadata(
            client_name="Python SDK",
            redirect_uris=[CALLBACK],
            grant_types=["authorization_code", "refresh_token"],
        ),
        FileStorage(),
        show,
        callback,
    )
    async with (
        httpx2.AsyncClient(auth=provider, timeout=60) as http,
        Client(streamable_http_client(URL, http_client=http)) as client,
    ):
        listed = await client.list_tools()
        print("TOOLS", json.dumps([tool.name for tool in listed.tools]), flush=True)
        if len(sys.argv) > 4:
            called = await client.call_tool(sys.argv[4], json.loads(sys.argv[5]))
            print("CALLED", called.model_dump_json(), flush=True)


asyncio.run(main())

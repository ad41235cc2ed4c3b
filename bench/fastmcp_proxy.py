"""FastMCP in front of an HTTP server, with one client for all. `python fastmcp_proxy.py PORT URL [fresh]`.

`fresh` is its default instead: a new upstream session for every request.
"""

import asyncio
import sys

from fastmcp import Client, FastMCP
from fastmcp.server import create_proxy
from fastmcp.server.providers.proxy import FastMCPProxy


async def main(port: int, url: str, *, fresh: bool) -> None:
    options = {"host": "127.0.0.1", "port": port, "stateless_http": True, "json_response": True}
    if fresh:
        await create_proxy(url).run_http_async(show_banner=False, log_level="error", **options)
        return
    async with Client(url) as client:
        proxy: FastMCP = FastMCPProxy(client_factory=lambda: client)
        await proxy.run_http_async(show_banner=False, log_level="error", **options)


asyncio.run(main(int(sys.argv[1]), sys.argv[2], fresh="fresh" in sys.argv))

"""What the official SDK gives by itself: its server in front of its client. `python sdk_proxy.py PORT URL`."""

import logging
import sys
from typing import Any

import anyio
import uvicorn
from mcp.client.client import Client
from mcp.server.lowlevel import Server


async def main(port: int, url: str) -> None:
    async with Client(url, mode="legacy") as client:

        async def list_tools(_context: Any, _params: Any) -> Any:
            return await client.list_tools()

        async def call_tool(_context: Any, params: Any) -> Any:
            return await client.call_tool(params.name, params.arguments or {})

        server = Server("sdk-proxy", on_list_tools=list_tools, on_call_tool=call_tool)
        app = server.streamable_http_app(stateless_http=True, json_response=True)
        config = uvicorn.Config(
            app, host="127.0.0.1", port=port, log_level="error", access_log=False, loop="none"
        )
        await uvicorn.Server(config).serve()


logging.basicConfig(level="ERROR")
anyio.run(main, int(sys.argv[1]), sys.argv[2], backend_options={"use_uvloop": True})

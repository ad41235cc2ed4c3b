"""What the bare listener and the bare pool cost: CPU per request at 1, 16 and 64 connections.

    python bench/net_echo.py [seconds]

The server runs in a child process and tells its own CPU time, so that the client's is not counted.
Then the pool calls the same child, and its CPU is that of this process.
"""

import asyncio
import subprocess
import sys
import time

import uvloop

from agent_gate.net.http import Request, Response, json_response
from agent_gate.net.pool import Pool, Target
from agent_gate.net.server import Server

BODY = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}'
HEADERS = [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]
POST = (
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2025-06-18\r\n"
    b"Authorization: Bearer 0123456789abcdef\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
)


async def echo(request: Request) -> Response:
    """Answer with the body; `/cpu` answers with this process's CPU seconds."""
    if request.path == "/cpu":
        return json_response(200, time.process_time())
    return Response(200, request.body)


async def serve() -> None:
    server = Server(echo)
    await server.start("127.0.0.1", 0)
    print(server.port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.drain(1)


class Client(asyncio.Protocol):
    """One connection that sends the next request as soon as a reply is whole."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.count = 0
        self.size = 0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(POST)

    def data_received(self, data: bytes) -> None:
        self.size += len(data)
        if not data.endswith(BODY):
            return
        self.count += 1
        if time.monotonic() < self.until:
            self.transport.write(POST)
        elif not self.done.done():
            self.done.set_result(None)


async def load(port: int, connections: int, seconds: float) -> int:
    loop = asyncio.get_running_loop()
    until = time.monotonic() + seconds
    clients = [
        (await loop.create_connection(lambda: Client(until), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(client.done for client in clients))
    for client in clients:
        client.transport.close()
    return sum(client.count for client in clients)


async def call(pool: Pool, target: Target, connections: int, seconds: float) -> int:
    count = 0
    until = time.monotonic() + seconds

    async def worker() -> None:
        nonlocal count
        while (now := time.monotonic()) < until:
            await pool.request("POST", target, b"/mcp", HEADERS, BODY, deadline=now + 60, max_bytes=1 << 20)
            count += 1

    await asyncio.gather(*(worker() for _ in range(connections)))
    return count


async def measure(port: int, seconds: float) -> None:
    pool, target = Pool(), Target.parse(f"http://127.0.0.1:{port}")

    async def server_cpu() -> float:
        reply = await pool.request("GET", target, b"/cpu", deadline=time.monotonic() + 5, max_bytes=1000)
        return float(reply.body)

    for connections in (1, 16, 64):
        before = await server_cpu()
        count = await load(port, connections, seconds)
        cost = (await server_cpu() - before) / count * 1e6
        print(f"server c{connections:<3} {count / seconds:8.0f} req/s {cost:7.1f} us CPU/request")
    for connections in (1, 32):
        mine = time.process_time()
        count = await call(pool, target, connections, seconds)
        cost = (time.process_time() - mine) / count * 1e6
        print(f"pool   c{connections:<3} {count / seconds:8.0f} req/s {cost:7.1f} us CPU/call")
    await pool.aclose()


def main() -> None:
    if sys.argv[1:] == ["serve"]:
        uvloop.run(serve())
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    command = [sys.executable, __file__, "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        uvloop.run(measure(int(child.stdout.readline()), seconds))
        child.communicate("")


if __name__ == "__main__":
    main()

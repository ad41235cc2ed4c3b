"""Ten thousand agents on one gateway: connecting, idling, one call each, and all coming back after a restart.

    python -m bench.agents [--agents 10000] [--window 60]

The gateway runs as in earnest, in its own process, with a real store and an HTTP API behind it. The agents are
bare sockets in this process, so that what is measured is the gateway.
"""

import argparse
import asyncio
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import Any

import psutil
import uvloop

from agent_gate.net.http import Request, Response
from agent_gate.net.server import Server

TOKEN = "token-of-ten-thousand-agents-in-a-bench"
COMMAND = str(Path(sys.executable).with_name("agent-gate"))
CONFIG = """
gateway: {{id: bench, port: {port}}}
admin: {{port: 0}}
agents: {{a: {{token: {token}, rate_limit: {{max_requests_per_minute: 0}}}}}}
services: {{api: {{url: "{url}", tools: {{look: {{request: {{method: GET, path: /look}}, read_only: true}}}}}}}}
permissions: permissions.yaml
limits: {{max_connections: 12000}}
"""
PERMISSIONS = 'defaults: [{pattern: "*", action: allow}]\n'
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tool_request","params":{"tool":"look","args":{}}}'
AT_ONCE = 200


def frame(opcode: int, data: bytes) -> bytes:
    """A client's frame with a mask of zeros; the data is shorter than 64 KiB."""
    short = len(data) < 126
    size = bytes([0x80 | len(data)]) if short else b"\xfe" + len(data).to_bytes(2, "big")
    return bytes([0x80 | opcode]) + size + bytes(4) + data


class BareAgent(asyncio.Protocol):
    """The least that can speak WebSocket: answers pings, knows the end of its one reply."""

    def __init__(self, token: str = TOKEN) -> None:
        loop = asyncio.get_running_loop()
        self.token = token
        self.opened: asyncio.Future[None] = loop.create_future()
        self.lost: asyncio.Future[None] = loop.create_future()
        self.reply: asyncio.Future[bytes] | None = None
        self.transport: Any = None
        self.buffer = bytearray()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(
            b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            b"Authorization: Bearer %b\r\n\r\n" % self.token.encode()
        )

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.opened.done():
            head, end, rest = self.buffer.partition(b"\r\n\r\n")
            if end:
                assert head.startswith(b"HTTP/1.1 101"), head
                self.buffer = rest
                self.opened.set_result(None)
        while self.opened.done() and len(self.buffer) >= 2 and self.take():
            pass

    def take(self) -> bool:
        """Handle one whole frame of the buffer."""
        size, start = self.buffer[1], 2
        if size >= 126:
            start = 4 if size == 126 else 10
            size = int.from_bytes(self.buffer[2:start], "big")
        if len(self.buffer) < start + size:
            return False
        opcode, data = self.buffer[0] & 0x0F, bytes(self.buffer[start : start + size])
        del self.buffer[: start + size]
        if opcode == 9:
            self.transport.write(frame(10, data))
        elif opcode == 8:
            self.transport.close()
        elif self.reply is not None and not self.reply.done():
            self.reply.set_result(data)
        return True

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("lost while opening"))
        if self.reply is not None and not self.reply.done():
            self.reply.set_exception(ConnectionError("lost while a call was under way"))

    async def ask(self, message: bytes) -> bytes:
        """The reply to one message."""
        self.reply = asyncio.get_running_loop().create_future()
        self.transport.write(frame(1, message))
        return await self.reply

    async def call(self) -> float:
        """One call; how long its reply took."""
        began = time.perf_counter()
        reply = json.loads(await self.ask(CALL))
        assert reply["result"]["status"] == "executed", reply
        return time.perf_counter() - began


class Bench:
    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count, self.port = folder, count, 0
        self.agents: list[BareAgent] = []

    def start(self) -> None:
        """Start the gateway and learn its port, which a restart keeps."""
        self.log = (self.folder / "log.txt").open("ab")
        command = [COMMAND, "serve", "--config", "config.yaml", "--insecure", "--port", str(self.port)]
        self.process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        assert self.process.stdout is not None
        self.port = int(json.loads(self.process.stdout.readline())["url"].rpartition(":")[2])
        self.measured = psutil.Process(self.process.pid)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.log.close()

    def rss(self) -> float:
        return self.measured.memory_info().rss / 1e6

    async def connect(self) -> BareAgent:
        """One agent, patient as a real one: it tries again, later each time, never in step with the others."""
        longest = 0.5
        while True:
            try:
                loop = asyncio.get_running_loop()
                _, agent = await loop.create_connection(BareAgent, "127.0.0.1", self.port)
                await agent.opened
            except OSError:
                await asyncio.sleep(random.uniform(0, longest))
                longest = min(longest * 2, 10)
            else:
                return agent

    async def connect_all(self) -> None:
        limit = asyncio.Semaphore(AT_ONCE)

        async def one() -> BareAgent:
            async with limit:
                return await self.connect()

        self.agents = await asyncio.gather(*(one() for _ in range(self.count)))

    async def call_all(self, window: float) -> list[float]:
        """One call of each agent, spread evenly over the window."""

        async def later(agent: BareAgent, delay: float) -> float:
            await asyncio.sleep(delay)
            return await agent.call()

        step = window / self.count
        return await asyncio.gather(*(later(agent, step * n) for n, agent in enumerate(self.agents)))


async def look(_request: Request) -> Response:
    return Response(200, b'{"ok":true}')


async def measure(folder: Path, count: int, window: float) -> dict[str, Any]:
    api = Server(look)
    await api.start("127.0.0.1", 0)
    bench = Bench(folder, count)
    config = CONFIG.format(port=0, token=TOKEN, url=f"http://127.0.0.1:{api.port}")
    (folder / "config.yaml").write_text(config)
    (folder / "permissions.yaml").write_text(PERMISSIONS)
    await asyncio.to_thread(bench.start)
    report: dict[str, Any] = {"agents": count, "rss_empty_mb": round(bench.rss())}
    began = time.perf_counter()
    await bench.connect_all()
    report["connect_s"] = round(time.perf_counter() - began, 1)
    busy = sum(bench.measured.cpu_times()[:2])
    await asyncio.sleep(25)
    report["idle_cpu_percent"] = round((sum(bench.measured.cpu_times()[:2]) - busy) / 25 * 100, 1)
    report["rss_idle_mb"] = round(bench.rss())
    taken = await bench.call_all(window)
    cuts = quantiles(taken, n=100)
    report |= {"calls": len(taken), "p50_ms": round(cuts[49] * 1000, 1), "p99_ms": round(cuts[98] * 1000, 1)}
    report["rss_called_mb"] = round(bench.rss())
    await restart(bench, report)
    await asyncio.to_thread(bench.stop)
    await api.drain(1)
    report["log_lines"] = len((folder / "log.txt").read_text().splitlines())
    return report


async def restart(bench: Bench, report: dict[str, Any]) -> None:
    """Stop and start the gateway; every agent comes back and calls again."""
    began = time.perf_counter()
    old = bench.agents
    coming = asyncio.create_task(bring_back(bench, old))
    await asyncio.to_thread(bench.stop)
    report["stop_s"] = round(time.perf_counter() - began, 1)
    await asyncio.to_thread(bench.start)
    began = time.perf_counter()
    bench.agents = await coming
    report["all_back_s"] = round(time.perf_counter() - began, 1)
    report["rss_back_mb"] = round(bench.rss())
    await bench.call_all(20)


async def bring_back(bench: Bench, old: list[BareAgent]) -> list[BareAgent]:
    async def one(agent: BareAgent) -> BareAgent:
        await agent.lost
        await asyncio.sleep(random.uniform(0, 3))
        return await bench.connect()

    return await asyncio.gather(*map(one, old))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the gateway under many agents.")
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--window", type=float, default=60.0)
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, given.agents * 2)), hard))
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(uvloop.run(measure(Path(folder), given.agents, given.window)), indent=2))


if __name__ == "__main__":
    main()

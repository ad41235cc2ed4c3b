"""Starts the counterpart of the bridge, and the bridge itself as a host would."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import free_port
from tests.waiting import PATIENCE, wait_until

HERE = Path(__file__).resolve().parent
BRIDGE = [sys.executable, "-c", "from agent_gate.cli.commands.bridge import command; command()"]


class Counterpart:
    """One server process on one port that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        argv = [sys.executable, str(HERE / "counterpart.py"), str(self.port), str(self.folder)]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_until(self.listening, "the counterpart's start")

    def listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def noted(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


@contextmanager
def counterpart(folder: Path) -> Iterator[Counterpart]:
    running = Counterpart(folder)
    running.start()
    try:
        yield running
    finally:
        running.kill()


class Host:
    """A host that speaks to the bridge line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    async def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        await self.process.stdin.drain()

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first line, old or new, that is wanted. Every line must be a JSON-RPC message."""
        for line in self.lines:
            if wanted(line):
                return line
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while True:
                raw = await self.process.stdout.readline()
                assert raw, "the bridge ended"
                line = json.loads(raw)
                assert line["jsonrpc"] == "2.0"
                self.lines.append(line)
                if wanted(line):
                    return line

    async def answer(self, ident: Any) -> dict[str, Any]:
        return await self.until(lambda line: line.get("id") == ident and "method" not in line)

    async def greet(self, revision: str = "2025-11-25") -> dict[str, Any]:
        params = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "host", "version": "1"},
        }
        await self.send(id="hello", method="initialize", params=params)
        answer = await self.answer("hello")
        await self.send(method="notifications/initialized")
        return answer

    async def leave(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await asyncio.wait_for(self.process.wait(), PATIENCE)


async def start_bridge(url: str, *options: str, **env: str) -> Host:
    process = await asyncio.create_subprocess_exec(
        *BRIDGE, url, *options, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **env}, limit=2**24
    )  # fmt: skip
    return Host(process)


def modern(**params: Any) -> dict[str, Any]:
    """The parameters of a request in the 2026-07-28 revision."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
    }
    return {**params, "_meta": {**meta, **params.get("_meta", {})}}

"""A real gateway in a process of its own, with a real MCP server behind it, that can be killed and started again."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import nursery
from tests.processes import free_port
from tests.typescript.node_tools import installed, node
from tests.waiting import PATIENCE, wait_until

TOKEN = "token-of-the-suite"
CLI = [nursery.COMMAND]
PERMISSIONS = """
defaults: [{pattern: "*", action: allow}]
rules: [{pattern: "everything__get_sum*", action: ask}]
"""


class GatewayProcess:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.socket = folder / "d" / "admin.sock"
        self.process: subprocess.Popen[str] | None = None
        everything = str(installed() / "@modelcontextprotocol/server-everything/dist/index.js")
        server = {"command": node(), "args": [everything, "stdio"]}
        settings = {"agent": {"token": TOKEN}, "mcpServers": {"everything": server}}
        (folder / "config.yaml").write_text(json.dumps(settings))
        (folder / "permissions.yaml").write_text(PERMISSIONS)

    def start(self) -> None:
        argv = ["serve", "--insecure", "--port", str(self.port), "--config", str(self.folder / "config.yaml")]
        with (self.folder / "log").open("a") as log:
            self.process = nursery.ForkedCommand(
                [*CLI, *argv, "--data", str(self.folder / "d")],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "LOG_LEVEL": "debug"},
            )
        assert self.process.stdout is not None
        assert json.loads(self.process.stdout.readline())["url"] == self.url
        wait_until(self.ready, "readiness")

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError:
            return False

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def operator(self, *args: str) -> str:
        argv = [*CLI, "approvals", "--admin-socket", str(self.socket), *args]
        return nursery.run(argv, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    def waiting(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.operator("list", "--json"))
        return found


@contextmanager
def gateway_process(folder: Path) -> Iterator[GatewayProcess]:
    running = GatewayProcess(folder)
    running.start()
    try:
        yield running
    finally:
        running.stop()

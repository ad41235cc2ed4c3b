"""One gateway for the whole folder, in front of a server of each era over each transport, and of one we did not write."""

import json
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.gateway import OTHER_TOKEN, TOKEN, running
from tests.processes import free_port
from tests.servers import command
from tests.waiting import wait_until

HERE = Path(__file__).resolve().parent
PERMISSIONS = """
defaults: [{pattern: "*", action: allow}]
rules:
  - {pattern: "*__two_rounds*", action: ask}
  - {pattern: "*__guarded*", action: ask, via: client}
"""


@contextmanager
def listening(argv, port, **env):
    """A server over HTTP in its own process, once its port is open."""
    with subprocess.Popen(argv, env={**os.environ, **env}, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: opened(port) or process.poll() is not None, "a server over HTTP")
            yield {"type": "remote-mcp", "url": f"http://127.0.0.1:{port}/mcp"}
        finally:
            process.kill()


def opened(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def child(argv):
    return {"type": "stdio-mcp", "command": argv[0], "args": argv[1:]}


@pytest.fixture(scope="package")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eras")
    everything = command("everything")
    with ExitStack() as stack:
        servers = {"all_stdio": child([*everything, "stdio"])}
        port = free_port()
        servers["all_http"] = stack.enter_context(
            listening([*everything, "streamableHttp"], port, PORT=str(port))
        )
        for era in "handshake", "modern":
            argv = [sys.executable, str(HERE / "era_server.py"), era, str(folder)]
            servers[f"{era}_stdio"] = child([*argv, "stdio"])
            port = free_port()
            servers[f"{era}_http"] = stack.enter_context(listening([*argv, "http", str(port)], port))
        config = {
            "gateway": {"id": "t", "port": 0},
            "admin": {"port": 0, "socket": "./data/admin.sock"},
            "agents": {
                name: {"token": token, "rate_limit": {"max_requests_per_minute": 0}}
                for name, token in (("a", TOKEN), ("b", OTHER_TOKEN))
            },
            "servers": servers,
            "permissions": "permissions.yaml",
        }
        files = {"config.yaml": json.dumps(config), "permissions.yaml": PERMISSIONS}
        started = stack.enter_context(running(folder, files, "--insecure"))
        wait_until(lambda: started.request("GET", "/ready", token=None).status == 200, "every server's start")
        yield started

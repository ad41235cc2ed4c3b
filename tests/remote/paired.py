"""A gateway and hosts, each in a process of its own, and a relay that stands between them."""

import asyncio
import json
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tests import nursery
from tests.gateway import COMMAND, TOKEN, Gateway, running
from tests.waiting import PATIENCE

from agent_gate.net.tls.certificates import ensure_certificate
from agent_gate.net.tls.files import server_context
from agent_gate.net.tls.mutual import unverified_client

CONFIG = f"""
gateway: {{port: 0, id: home, tenant: family}}
admin: {{port: 0}}
agents:
  assistant: {{token: {TOKEN}, context: [isolation_key]}}
"""
PERMISSIONS = "rules: [{pattern: '*', action: allow}]\n"


@contextmanager
def gating(folder: Path, permissions: str = PERMISSIONS, more: str = "") -> Iterator[Gateway]:
    files = {"config.yaml": CONFIG + more, "permissions.yaml": permissions}
    with running(folder, files, "--insecure", env={"LOG_LEVEL": "debug"}) as gateway:
        yield gateway


def command(gateway: Gateway, *words: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    """The installed command, as an operator types it beside that gateway."""
    given = [COMMAND, *words, "--admin-socket", gateway.announced["socket"]]
    return nursery.run(
        given, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False, **more
    )


class HostProcess:
    """A tool host in its own process, as a newcomer starts it."""

    def __init__(self, folder: Path, spec: str, *words: str, **env: str) -> None:
        folder.mkdir(exist_ok=True)
        self.log = (folder / "stderr.txt").open("wb")
        self.process = nursery.ForkedCommand(
            [COMMAND, "host", "run", spec, *words],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **env},
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (folder / "stderr.txt").read_text()
        self.announced: dict[str, Any] = json.loads(line)

    def stop(self) -> int:
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        code = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()
        return code


@contextmanager
def hosting(
    gateway: Gateway, folder: Path, spec: str = "agent_gate.hosts.memory:host", *, listen: str = "127.0.0.1:0"
) -> Iterator[HostProcess]:
    key = command(gateway, "identity").stdout.strip()
    host = HostProcess(
        folder, spec, "--name", "memory-east", "--listen", listen, "--gateway-key", key, "--state", "state"
    )
    try:
        yield host
    finally:
        host.stop()


def pair(gateway: Gateway, host: HostProcess, url: str = "") -> "subprocess.CompletedProcess[str]":
    pin = host.announced["fingerprint"]
    return command(
        gateway, "pair", "tool", url or host.announced["url"], "memory-east", "--remote-fingerprint", pin
    )


class Relay:
    """Ends TLS with a certificate of its own and passes every byte on, as somebody in the middle would."""

    def __init__(self, folder: Path, port: int) -> None:
        files = ensure_certificate(folder / "relay")
        self._context, self._to = server_context(files.cert, files.key), port
        self.passed = 0
        self._up, self._thread = (
            threading.Event(),
            threading.Thread(target=lambda: asyncio.run(self._serve())),
        )

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0, ssl=self._context)
        self.port = server.sockets[0].getsockname()[1]
        self._up.set()
        await self._over.wait()
        server.close()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        context: ssl.SSLContext = unverified_client()
        onward = await asyncio.open_connection("127.0.0.1", self._to, ssl=context)
        await asyncio.gather(
            self._pass(reader, onward[1]), self._pass(onward[0], writer), return_exceptions=True
        )

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.passed += len(data)
            writer.write(data)
            await writer.drain()
        writer.close()

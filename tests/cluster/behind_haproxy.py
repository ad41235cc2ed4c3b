"""Gateways behind a real HAProxy, as `deploy/ha` ships them: what `compose.ha.yaml` starts, by hand."""

import contextlib
import http.client
import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.deploy.haproxy import program
from tests.gateway import Api, Gateway
from tests.processes import free_port
from tests.waiting import PATIENCE, wait_until

DEPLOY = Path(__file__).parents[2] / "deploy" / "ha"
SERVICE = """
admin: {{port: 0, socket: ./data/admin.sock}}
rate_limit: {{max_requests_per_minute: 0, max_pending_approvals: 0}}
services:
  home:
    url: "{url}"
    tools:
      write: {{args: {{n: {{type: integer}}}}, request: {{method: POST, path: /write}}}}
      count: {{args: {{n: {{type: integer}}}}, request: {{method: POST, path: /count}}}}
"""
RULES = "rules: [{pattern: 'count*', action: allow}]"


class Cluster:
    """Gateways on one database and HAProxy before them, each gateway on an address of loopback of its own."""

    def __init__(self, folder, api, database, count=2):
        self.folder, self.api, self.token, self.port = folder, api, secrets.token_hex(24), free_port()
        self.hosts = {f"gateway-{at}": f"127.0.0.{at + 1}" for at in range(1, count + 1)}
        self.certs = folder / "certs"
        self._short = tempfile.TemporaryDirectory()  # the path of a socket has at most a hundred characters
        self.stats = f"{self._short.name}/stats"
        subprocess.run(
            [DEPLOY / "certificate.sh", *self.hosts],
            env={**os.environ, "CERTS": str(self.certs)},
            check=True,
            capture_output=True,
        )
        self.env = {
            "GATE_PORT": str(self.port),
            "CERTS": str(self.certs),
            "AGENT_TOKEN": self.token,
            "AGENT_GATE_SECRET": secrets.token_hex(32),
            "DATABASE_URL": database,
        }
        self.gateways, self.proxy = {}, None

    def start(self):
        for name, host in self.hosts.items():
            self.gateways[name] = self._start(name, host)
        self.proxy = self._start_proxy()
        wait_until(lambda: self.proxy.poll() is not None or all(map(self.takes_calls, self.hosts)))
        assert self.proxy.poll() is None, (self.folder / "haproxy.log").read_text()

    def _start(self, name, host):
        place = self.folder / name
        place.mkdir()
        text = (DEPLOY / "config.yaml").read_text() + SERVICE.format(url=self.api.url)
        (place / "config.yaml").write_text(text)
        (place / "permissions.yaml").write_text(RULES)
        env = {**self.env, "GATE_ID": name, "GATE_HOST": host}
        return Gateway(place, env=env).start()

    def _start_proxy(self):
        pages = [gateway.announced["admin"].rpartition("/")[2] for gateway in self.gateways.values()]
        env = {
            "HAPROXY_STATS": self.stats,
            "MAX_CONNECTIONS": "2000",
            "LISTEN_AGENTS": f"127.0.0.1:{self.port}",
            "LISTEN_PAGE": f"127.0.0.1:{free_port()}",
            "CERTS": str(self.certs),
            "PAGE_1": pages[0],
            "PAGE_2": pages[1],
            **{f"GATEWAY_{at}": f"{host}:{self.port}" for at, host in enumerate(self.hosts.values(), 1)},
        }
        path = self.folder / "haproxy.cfg"
        path.write_text(self._proxy_text())
        with (self.folder / "haproxy.log").open("w") as log:
            return subprocess.Popen([program(), "-db", "-f", path], env=env, stdout=log, stderr=log)

    def _proxy_text(self):
        """The file as it is shipped, with a line more for each gateway more, as an operator would write it."""
        text = (DEPLOY / "haproxy.cfg").read_text()
        line = next(
            line for line in text.splitlines() if line.startswith('  server gateway-2 "${GATEWAY_2}"')
        )
        more = [
            line.replace("gateway-2", name).replace("GATEWAY_2", f"GATEWAY_{name[-1]}")
            for name in [*self.hosts][2:]
        ]
        return text.replace(line, "\n".join([line, *more]))

    def close(self):
        if self.proxy is not None:
            self.proxy.terminate()
            self.proxy.wait(PATIENCE)
        with ThreadPoolExecutor() as pool:
            list(pool.map(Gateway.stop, self.gateways.values()))
        self._short.cleanup()

    def request(self, method, path, body=None, timeout=60, **headers):
        """One request of an agent, over TLS and through HAProxy, on a connection of its own."""
        trust = ssl.create_default_context(cafile=self.certs / "ca.crt")
        line = http.client.HTTPSConnection("localhost", self.port, timeout=timeout, context=trust)
        given = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers}
        try:
            line.request(method, path, None if body is None else json.dumps(body), given)
            reply = line.getresponse()
            return reply.status, dict(reply.getheaders()), read_json(reply.read())
        finally:
            line.close()

    def restart(self, name):
        """Stop one as an operator would, and start it again when it is gone."""
        assert self.gateways[name].stop() == 0
        self.start_again(name)

    def start_again(self, name):
        self.gateways[name].start()
        wait_until(lambda: self.takes_calls(name))

    def takes_calls(self, name):
        """Whether HAProxy sends calls to it."""
        with socket.socket(socket.AF_UNIX) as line:
            if line.connect_ex(self.stats):
                return False
            line.sendall(b"show stat\n")
            said = b"".join(iter(lambda: line.recv(65536), b"")).decode()
        return any(row.startswith(f"gateways,{name},") and ",UP," in row for row in said.splitlines())

    def others(self, name):
        return [gateway for other, gateway in self.gateways.items() if other != name]


def read_json(body):
    """What a gateway answers is JSON; HAProxy's own errors are not."""
    try:
        return json.loads(body or b"{}")
    except ValueError:
        return {"error": {"code": "NO_GATEWAY", "message": body.decode(errors="replace")[:200]}}


@contextlib.contextmanager
def behind_haproxy(folder, database, count=2):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here")
    program()
    with Api() as api, contextlib.closing(Cluster(folder, api, database, count)) as made:
        made.start()
        yield made

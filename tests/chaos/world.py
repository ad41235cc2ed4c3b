"""A gateway that is killed again and again, the agents and the approver around it, and what they saw."""

import http.client
import itertools
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from tests.chaos.checker import Seen
from tests.nursery import COMMAND, ForkedCommand
from tests.waiting import PATIENCE

from agent_gate.cli.operator import AdminClient
from agent_gate.errors import GatewayError
from agent_gate.observe.failpoint import EXIT_CODE

TOKEN = "agent-token-for-the-crash-harness"
CONFIG = """
gateway: {{id: chaos, port: 0}}
admin: {{port: 0, socket: ./data/admin.sock}}
agents: {{a: {{token: {token}, rate_limit: {{max_requests_per_minute: 0, max_pending_approvals: 0}}}}}}
services: {{rec: {{url: "http://127.0.0.1:{port}", tools: tools.yaml}}}}
permissions: permissions.yaml
"""
TOOLS = """
tools:
  rec_allowed: {args: {n: {type: integer, required: true}}, request: {method: POST, path: /allowed}, signature: "{n}"}
  rec_asked: {args: {n: {type: integer, required: true}}, request: {method: POST, path: /asked}, signature: "{n}"}
"""
PERMISSIONS = """
rules: [{pattern: "rec_allowed(*)", action: allow}, {pattern: "rec_asked(*)", action: ask}]
"""


class World:
    def __init__(self, folder: Path) -> None:
        self.folder, self.seen, self.numbers = folder, Seen(), itertools.count(1)
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.gateway: subprocess.Popen | None = None
        self.url_port = 0
        self.recorder = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("recorder.py")), str(folder / "ledger")],
            stdout=subprocess.PIPE,
            text=True,
        )
        port = self.recorder.stdout.readline().strip()
        (folder / "config.yaml").write_text(CONFIG.format(port=port, token=TOKEN))
        (folder / "tools.yaml").write_text(TOOLS)
        (folder / "permissions.yaml").write_text(PERMISSIONS)
        self.admin = AdminClient(folder / "data" / "admin.sock")

    def start(self, failpoint: str | None = None) -> None:
        env = {"PATH": "/usr/bin:/bin", "LOG_LEVEL": "error"} | (
            {"AGENT_GATE_FAILPOINT": failpoint} if failpoint else {}
        )
        self.log = (self.folder / "stderr").open("ab")
        self.gateway = ForkedCommand(
            [COMMAND, "serve", "--config", "config.yaml", "--insecure"],
            cwd=self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        line = self.gateway.stdout.readline()
        if line:
            self.url_port = int(json.loads(line)["url"].rpartition(":")[2])

    def kill(self) -> int:
        """SIGKILL unless it is dead already; the exit code."""
        if self.gateway.poll() is None:
            self.gateway.send_signal(signal.SIGKILL)
        return self.reap()

    def reap(self) -> int:
        code = self.gateway.wait(PATIENCE)
        self.gateway.stdout.close()
        self.log.close()
        return code

    def crash(self, failpoint: str | None, rng: random.Random) -> None:
        """One life of the gateway, ended at a named place or at any moment."""
        self.start(f"{failpoint}:{rng.randint(1, 3)}" if failpoint else None)
        if failpoint is None:
            time.sleep(rng.uniform(0.005, 0.5))
            self.kill()
            self.seen.kills["anywhere"] += 1
            return
        try:
            self.gateway.wait(6)
        except subprocess.TimeoutExpired:
            self.kill()
            return
        if self.reap() == EXIT_CODE:
            self.seen.kills[failpoint] += 1

    def post(self, path: str, body: object, headers: dict[str, str]) -> tuple[int, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", self.url_port, timeout=3)
        try:
            connection.request(
                "POST", path, json.dumps(body), {"Authorization": f"Bearer {TOKEN}", **headers}
            )
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def agent(self, tool: str, keyed: bool) -> None:
        """Calls, each with a number of its own; with a key it insists until it hears an answer."""
        while not self.over.is_set():
            with self.lock:
                n = next(self.numbers)
            headers = {"Prefer": "wait=1"} | ({"Idempotency-Key": f"key-{n}"} if keyed else {})
            for _ in range(40 if keyed else 1):
                try:
                    status, said = self.post(f"/api/tools/{tool}", {"n": n}, headers)
                except (OSError, ValueError, http.client.HTTPException):
                    time.sleep(0.03)
                    continue
                if status == 200 and said["status"] == "executed":
                    self.seen.executed.add(n)
                if status != 503:
                    break

    def approver(self) -> None:
        """Answers what is open: mostly yes, sometimes no; remembers only what the gateway acknowledged."""
        while not self.over.is_set():
            try:
                for approval in self.admin.get("/api/approvals"):
                    deny = int(approval["call"], 16) % 7 == 0
                    body = {"verdict": "deny" if deny else "approve"}
                    self.admin.request("POST", f"/api/approvals/{approval['id']}", body)
                    (self.seen.denied if deny else self.seen.approved).add(approval["call"])
            except (GatewayError, OSError, http.client.HTTPException, ValueError):
                pass
            time.sleep(0.02)

    def ledger(self) -> Counter:
        path = self.folder / "ledger"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(json.loads(line)["n"] for line in lines)

    def close(self) -> None:
        self.over.set()
        if self.gateway and self.gateway.poll() is None:
            self.gateway.terminate()
            self.reap()
        self.recorder.kill()
        self.recorder.wait()
        self.recorder.stdout.close()

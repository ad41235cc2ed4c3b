"""Agents that call at a steady rate, each in its own way, and a person who answers; they remember what they were told."""

import contextlib
import http.client
import itertools
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass

from tests.chaos.checker import Seen

from agent_gate import SyncClient
from agent_gate.errors import GatewayError

MODERN, HANDSHAKE = "2026-07-28", "2025-06-18"
LOST = (OSError, http.client.HTTPException)
NUMBERS = itertools.count(1)
"""Each call of a process of tests has a number of its own."""


@dataclass(frozen=True)
class Made:
    """One call as its agent saw it: `said` is "executed", "denied", "unknown" or "failed"."""

    n: int
    way: str
    began: float
    ended: float
    said: str
    reply: object


class RestAgent:
    name = "REST"

    def __init__(self, cluster):
        self._cluster = cluster

    def call(self, n):
        status, _, reply = self._cluster.request("POST", "/api/tools/count", {"n": n})
        return ("executed" if status == 200 else said_by(reply)), reply

    def close(self):
        pass


class AskingAgent(RestAgent):
    """Calls what a person is asked about, leaves, and comes back for the result until there is one. With a key for each
    call it may send it again where it heard nothing."""

    name = "REST, asked"

    def call(self, n):
        call, deadline = None, time.monotonic() + 90
        while time.monotonic() < deadline:
            try:
                status, reply = self._begin(n) if call is None else self._follow(call)
            except LOST:
                time.sleep(0.05)
                continue
            call = reply.get("call", call)
            if status == 200:
                return "executed", reply
            if status != 202 and reply.get("error", {}).get("code") not in AGAIN:
                return said_by(reply), reply
            time.sleep(0.02)
        return "failed", f"the call {n} came to no end"

    def _begin(self, n):
        key = {"Idempotency-Key": f"asked-{n}", "Prefer": "wait=0"}
        status, _, reply = self._cluster.request("POST", "/api/tools/write", {"n": n}, **key)
        return status, reply

    def _follow(self, call):
        status, _, reply = self._cluster.request("GET", f"/api/calls/{call}?wait=5")
        return status, reply


AGAIN = ("DEPENDENCY_UNAVAILABLE", "NO_GATEWAY", "RATE_LIMITED")


def said_by(reply):
    code = reply.get("error", {}).get("code") if isinstance(reply, dict) else None
    return {"OUTCOME_UNKNOWN": "unknown", "APPROVAL_DENIED": "denied"}.get(code, "failed")


class McpAgent(RestAgent):
    def __init__(self, cluster, revision):
        super().__init__(cluster)
        self.name, self._revision = f"MCP {revision}", revision
        self._session = {} if revision == MODERN else {"Mcp-Session-Id": begin_session(cluster)}

    def call(self, n):
        params, headers = {"name": "count", "arguments": {"n": n}}, dict(self._session)
        if self._revision == MODERN:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "count"}
        headers |= {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": self._revision}
        body = {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params}
        status, _, reply = self._cluster.request("POST", "/mcp", body, **headers)
        well = status == 200 and not reply.get("result", {"isError": True}).get("isError")
        return ("executed" if well else "unknown" if "OUTCOME_UNKNOWN" in str(reply) else "failed"), reply


def begin_session(cluster):
    hello = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    status, headers, reply = cluster.request(
        "POST", "/mcp", body, Accept="application/json, text/event-stream"
    )
    assert status == 200, reply
    return {name.lower(): value for name, value in headers.items()}["mcp-session-id"]


class SocketAgent:
    """An agent on a WebSocket, by the library that agents use."""

    name = "WebSocket"

    def __init__(self, cluster):
        url = f"wss://localhost:{cluster.port}"
        self._client = SyncClient(url, cluster.token, ca=cluster.certs / "ca.crt").__enter__()

    def call(self, n):
        try:
            return "executed", self._client.call("count", {"n": n}, timeout=60)
        except GatewayError as error:
            return said_by({"error": error.as_dict()}), error.as_dict()

    def close(self):
        self._client.close()


class Load:
    """Some agents of each way, together `rate` calls a second while nothing holds them up."""

    def __init__(self, cluster, rate, each=3, asking=0):
        self.made: list[Made] = []
        self._end = threading.Event()
        agents = [
            agent
            for _ in range(each)
            for agent in (
                RestAgent(cluster),
                McpAgent(cluster, MODERN),
                McpAgent(cluster, HANDSHAKE),
                SocketAgent(cluster),
            )
        ]
        self._agents = agents + [AskingAgent(cluster) for _ in range(asking)]
        self._pause = len(agents) / rate
        self._threads = [threading.Thread(target=self._run, args=(agent,)) for agent in self._agents]

    def _run(self, agent):
        while not self._end.is_set():
            began = time.monotonic()
            n = next(NUMBERS)
            try:
                said, reply = agent.call(n)
            except LOST as error:
                said, reply = "failed", repr(error)
            self.made.append(Made(n, agent.name, began, time.monotonic(), said, reply))
            self._end.wait(max(0.0, self._pause - (time.monotonic() - began)))

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        for thread in self._threads:
            thread.join()
        for agent in self._agents:
            agent.close()

    def not_executed(self):
        return [one for one in self.made if one.said not in ("executed", "denied")]

    def by_way(self):
        return Counter(one.way for one in self.made)

    def silence(self):
        """The longest time in which no call was executed."""
        ends = sorted(one.ended for one in self.made if one.said == "executed")
        return max((later - sooner for sooner, later in itertools.pairwise(ends)), default=0.0)

    def longest(self):
        return max((one.ended - one.began for one in self.made), default=0.0)


class Answering(threading.Thread):
    """A person who answers every question on whichever gateway answers: yes, and to one in seven no. Remembers only what
    was acknowledged."""

    def __init__(self, admins, seen: Seen):
        super().__init__(daemon=True)
        self._admins, self._seen, self._over = admins, seen, threading.Event()

    def run(self):
        for admin in itertools.cycle(self._admins):
            if self._over.wait(0.05):
                return
            with contextlib.suppress(GatewayError, ValueError, *LOST):
                for question in admin.get("/api/approvals"):
                    self._answer(admin, question)

    def _answer(self, admin, question):
        deny = int(question["call"], 16) % 7 == 0
        verdict = {"verdict": "deny" if deny else "approve"}
        admin.request("POST", f"/api/approvals/{question['id']}", verdict)
        (self._seen.denied if deny else self._seen.approved).add(question["call"])

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self.join()


def ledger_of(api):
    """How often each number reached the world."""
    return Counter(json.loads(one["body"])["n"] for one in api.requests if one["method"] == "POST")

"""A host and a gateway's keys that meet over real sockets, in one process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from tests.peers.handshakes import Ledger

from agent_gate.core.call import new_id
from agent_gate.core.ports import SystemClock
from agent_gate.hosts import Host
from agent_gate.hosts.component import HostSetup
from agent_gate.hosts.server import HostServer
from agent_gate.net.pool import Pool, Target, WholeReply
from agent_gate.peers.authority import Authority, CertificateSubject, Leaf
from agent_gate.peers.dialing import Endpoint, dial
from agent_gate.peers.identity import GatewayIdentity
from agent_gate.peers.pairing import Candidate, Pairing, Wish
from agent_gate.peers.passport import Passport
from agent_gate.peers.signing import IdentityKey

CONTEXT = {"agent_id": "assistant", "session_id": "ses_1"}


async def nobody_confirms(_fingerprint: str) -> bool:
    return False


@dataclass
class Gate:
    """The gateway's side, without a gateway."""

    key: IdentityKey = field(default_factory=IdentityKey.new)
    authority: Authority = field(default_factory=lambda: Authority.new("home", SystemClock.now()))
    ledger: Ledger = field(default_factory=Ledger)

    def __post_init__(self) -> None:
        self.passport = Passport(GatewayIdentity("home", self.key, self.authority), SystemClock())

    @property
    def leaf(self) -> Leaf:
        return self.ledger.active[-1]

    async def pair(self, port: int, pin: str, name: str = "memory-east") -> Candidate:
        endpoint = Endpoint.parse(f"wss://127.0.0.1:{port}")
        wish = Wish(CertificateSubject("tool_host", name), endpoint.url, pin)
        async with dial(endpoint, self.passport.pair) as line:
            clock = SystemClock()
            pairing = Pairing(line, self.key, "home", self.authority, self.ledger, clock, nobody_confirms)
            return await pairing.run(wish)

    async def ask(self, port: int, method: str, path: str, body: Any = None) -> WholeReply:
        pool = Pool(self.passport.context, fingerprint=self.leaf.fingerprint)
        try:
            return await send(pool, Target.parse(f"https://127.0.0.1:{port}"), method, path, body)
        finally:
            await pool.aclose()

    async def call(self, port: int, tool: str, args: dict[str, Any], **more: Any) -> dict[str, Any]:
        reply = await self.ask(port, "POST", "/v1/tools/call", a_call(tool, args, **more))
        return dict(msgspec.json.decode(reply.body), http=reply.status)


async def send(pool: Pool, target: Target, method: str, path: str, body: Any = None) -> WholeReply:
    data = None if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
    deadline = asyncio.get_running_loop().time() + 10
    return await pool.request(method, target, path.encode(), (), data, deadline=deadline, max_bytes=1 << 20)


def a_call(tool: str, args: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "version": "v1",
        "call_id": new_id(),
        "tool_name": tool,
        "tenant_id": "home",
        "args": args,
        "context": CONTEXT,
        **more,
    }


@asynccontextmanager
async def serving_host(host: Host, folder: Path, gate: Gate, **more: Any) -> AsyncIterator[HostServer]:
    settings = HostSetup(component_id="memory-east", folder=folder, gateway_key=gate.key.public, **more)
    server = host.server(settings)
    await server.start("127.0.0.1", 0)
    try:
        yield server
    finally:
        await server.stop(0.1)

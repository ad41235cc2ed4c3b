"""Many paired hosts: all are served, and at no time are more than fifty being dialled.

`AGENT_GATE_HOSTS=1000` takes a thousand of them.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.rows import opened
from tests.toolboxes import toolbox
from tests.waiting import until

from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import SystemClock
from agent_gate.net.http import Request, Response, json_response
from agent_gate.net.pool import Pool
from agent_gate.net.server import Server
from agent_gate.net.tls.certificates import private_pem
from agent_gate.net.tls.mutual import KeyPair, mutual_server
from agent_gate.peers.authority import CertificateSubject, Leaf
from agent_gate.peers.encoding import to_base64
from agent_gate.peers.signing import IdentityKey
from agent_gate.sources.pins import Pins
from agent_gate.sources.remote import Peering
from agent_gate.sources.remote.peering import DIALLED_AT_A_TIME
from agent_gate.sources.supervisor import Supervisor
from agent_gate.store import StoreSettings
from agent_gate.store.statement import Statement
from agent_gate.vault.vault import Vault

HOSTS = int(os.environ.get("AGENT_GATE_HOSTS", "200"))
OFFER = {"version": "v1", "service": "many", "tools": [{"name": "ping", "description": "Answer"}]}
PUT = "INSERT INTO peers VALUES (?, 'tool_host', ?, ?, 'active', 0, NULL, NULL, NULL, '{}')"
CERTIFY = "INSERT INTO peer_certificates VALUES (?, ?, ?, ?, 'active', 0, ?, NULL)"


class Crowd:
    """Listeners with a certificate each, which count who asks at the same time."""

    def __init__(self) -> None:
        self.asking = self.most = self.asked = 0

    async def handle(self, _request: Request) -> Response:
        self.asking += 1
        self.asked += 1
        self.most = max(self.most, self.asking)
        await asyncio.sleep(0.01)
        self.asking -= 1
        return json_response(200, OFFER)

    @asynccontextmanager
    async def listening(self, contexts: list[ssl.SSLContext]) -> AsyncIterator[list[int]]:
        servers = [Server(self.handle, ssl=context) for context in contexts]
        for server in servers:
            await server.start("127.0.0.1", 0)
        try:
            yield [server.port for server in servers]
        finally:
            await asyncio.gather(*(server.drain(0) for server in servers))


@pytest.mark.timeout(240)
async def test_hundreds_of_hosts_are_served_and_dialled_fifty_at_a_time(tmp_path: Path) -> None:
    clock, crowd, pool = SystemClock(), Crowd(), Pool()
    async with opened(StoreSettings(path=tmp_path / "data" / "gate.db")) as store:
        vault = Vault(store, clock, tmp_path / "data", "family", {})
        await vault.open()
        supervisor = Supervisor(Shelf(), clock, Pins(store))
        peering = Peering(store, clock, supervisor, lambda: toolbox(pool), tenant="family")
        await peering.open(tmp_path / "data", vault, "home")
        authority = peering.identity.authority
        key = ec.generate_private_key(ec.SECP256R1())
        leaves: list[Leaf] = [
            authority.issue(key.public_key(), CertificateSubject("tool_host", f"host-{n}"), clock.now())
            for n in range(HOSTS)
        ]
        contexts = [mutual_server(KeyPair(leaf.pem, private_pem(key)), authority.pem) for leaf in leaves]
        async with crowd.listening(contexts) as ports:
            identity = to_base64(IdentityKey.new().public)
            rows = [
                statement
                for n, (leaf, port) in enumerate(zip(leaves, ports, strict=True))
                for statement in (
                    Statement(PUT, (f"host-{n}", f"wss://127.0.0.1:{port}/v1/pair", identity)),
                    Statement(CERTIFY, (leaf.serial, f"host-{n}", leaf.fingerprint, str(n), leaf.not_after)),
                )
            ]
            await store.write(*rows)
            await peering.peers.load()
            await peering.start()
            await until(lambda: sum(tool.available for tool in supervisor.shelf.catalog.tools) >= HOSTS)
            assert crowd.asked >= HOSTS
            assert crowd.most <= DIALLED_AT_A_TIME
            await supervisor.stop()
    await pool.aclose()

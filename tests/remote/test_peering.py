"""The gateway among its peers: renewal by itself, revocation of what is connected, and attempts on record."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.hosts.hosting import Gate, serving_host
from tests.rows import opened
from tests.toolboxes import toolbox
from tests.waiting import until

from agent_gate.core.ports import Plan, SystemClock
from agent_gate.errors import InvalidArgs, PairingFailed, PairingRequired, RateLimited
from agent_gate.hosts import Host
from agent_gate.hosts.server import HostServer
from agent_gate.net.pool import Pool
from agent_gate.peers.authority import CertificateSubject
from agent_gate.peers.pairing import Wish
from agent_gate.sources.remote import Peering
from agent_gate.store import Store, StoreSettings
from agent_gate.store.statement import Statement
from agent_gate.vault.vault import Vault


@dataclass
class KeptPlans:
    """What a supervisor would keep."""

    added: dict[str, Plan] = field(default_factory=dict)

    async def add(self, *plans: Plan) -> None:
        self.added |= {plan.source.key: plan for plan in plans}

    async def remove(self, key: str) -> None:
        await self.added.pop(key).source.__aexit__(None, None, None)


@dataclass
class Meeting:
    """A gateway that is paired with a host."""

    store: Store
    peering: Peering
    plans: KeptPlans
    server: HostServer

    def wish(self) -> Wish:
        assert self.server.folder is not None
        endpoint, pin = f"wss://127.0.0.1:{self.server.server.port}", self.server.folder.identity.fingerprint
        return Wish(CertificateSubject("tool_host", "memory-east"), endpoint, pin)

    async def attempts(self) -> list[str]:
        rows = await self.store.read("SELECT state FROM record WHERE tool = 'peers:pair' ORDER BY seq")
        return [row[0] for row in rows]


@asynccontextmanager
async def meeting(tmp_path: Path) -> AsyncIterator[Meeting]:
    clock, plans, pool = SystemClock(), KeptPlans(), Pool()
    async with opened(StoreSettings(path=tmp_path / "data" / "gate.db")) as store:
        vault = Vault(store, clock, tmp_path / "data", "family", {})
        await vault.open()
        peering = Peering(store, clock, plans, lambda: toolbox(pool), tenant="family")
        await peering.open(tmp_path / "data", vault, "home")
        gate = Gate(key=peering.identity.key)
        async with serving_host(Host("memory"), tmp_path / "host", gate) as server:
            found = Meeting(store, peering, plans, server)
            await peering.pair(found.wish(), "operator")
            try:
                yield found
            finally:
                for plan in plans.added.values():
                    await plan.source.__aexit__(None, None, None)
        await pool.aclose()


async def test_a_certificate_is_renewed_by_itself_when_two_thirds_are_over(tmp_path: Path) -> None:
    async with meeting(tmp_path) as found:
        before = found.peering.peers.get("memory-east")
        await found.peering.renew_due()
        assert found.peering.peers.get("memory-east").fingerprint == before.fingerprint
        soon = SystemClock.now() + 9 * 86_400
        await found.store.write(Statement("UPDATE peer_certificates SET not_after = ?", (soon,)))
        await found.peering.peers.load()
        await found.peering.renew_due()
        after = found.peering.peers.get("memory-east")
        assert after.fingerprint != before.fingerprint
        assert after.not_after - SystemClock.now() > 29 * 86_400
        assert await found.plans.added["memory-east"].source.connect() == []
        states = await found.store.read("SELECT state FROM peer_certificates ORDER BY issued_at")
        assert [row[0] for row in states] == ["superseded", "active"]


async def test_a_host_that_is_away_when_its_certificate_is_due_is_tried_again(tmp_path: Path) -> None:
    async with meeting(tmp_path) as found:
        soon = SystemClock.now() + 9 * 86_400
        await found.store.write(Statement("UPDATE peer_certificates SET not_after = ?", (soon,)))
        await found.peering.peers.load()
        await found.server.server.drain(0)
        await found.peering.renew_due()
        assert found.peering.peers.usable("memory-east").status == "active"
        assert (await found.attempts())[-1] == "failed"


async def test_p25_a_revocation_closes_what_is_connected_and_refuses_what_comes(tmp_path: Path) -> None:
    async with meeting(tmp_path) as found:
        source = found.plans.added["memory-east"].source
        await source.connect()
        await found.peering.revoke("memory-east", "anna")
        assert found.plans.added == {}
        await until(lambda: not any(not hasattr(one, "frames") for one in found.server.server.connections))
        with pytest.raises(PairingRequired):
            await source.connect()


async def test_every_attempt_is_on_record_as_a_call(tmp_path: Path) -> None:
    async with meeting(tmp_path) as found:
        other = Wish(found.wish().subject, found.wish().endpoint, "sha256:" + "0" * 64)
        with pytest.raises(PairingFailed):
            await found.peering.pair(other, "operator")
        assert await found.attempts() == ["dispatching", "completed", "dispatching", "failed"]


async def test_one_endpoint_has_one_handshake_at_a_time(tmp_path: Path) -> None:
    async with meeting(tmp_path) as found:
        both = (found.peering.pair(found.wish(), "operator"), found.peering.pair(found.wish(), "operator"))
        ended = await asyncio.gather(*both, return_exceptions=True)
        assert sum(isinstance(end, InvalidArgs) for end in ended) == 1


async def test_a_host_has_five_handshakes_a_minute(tmp_path: Path) -> None:
    async with meeting(tmp_path) as found:
        for _ in range(4):
            await found.peering.pair(found.wish(), "operator")
        with pytest.raises(RateLimited, match="a minute"):
            await found.peering.pair(found.wish(), "operator")
        elsewhere = Wish(found.wish().subject, "wss://127.0.0.1:1", found.wish().pin)
        with pytest.raises(PairingFailed, match="cannot be reached"):
            await found.peering.pair(elsewhere, "operator")


async def test_another_gateway_on_the_same_store_hears_of_pairing_and_revocation(tmp_path: Path) -> None:
    async with meeting(tmp_path) as found:
        plans, clock, pool = KeptPlans(), SystemClock(), Pool()
        vault = Vault(found.store, clock, tmp_path / "data", "family", {})
        await vault.open()
        other = Peering(found.store, clock, plans, lambda: toolbox(pool), tenant="family")
        await other.open(tmp_path / "data", vault, "home")
        await other.start()
        assert await plans.added["memory-east"].source.connect() == []
        await other.refresh()
        kept = plans.added["memory-east"]
        await found.peering.revoke("memory-east", "anna")
        await other.refresh()
        assert plans.added == {}
        with pytest.raises(PairingRequired):
            await kept.source.connect()
        await found.peering.pair(found.wish(), "operator")
        await other.refresh()
        assert await plans.added["memory-east"].source.connect() == []
        await plans.remove("memory-east")
        await pool.aclose()

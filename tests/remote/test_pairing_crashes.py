"""A handshake whose one side is killed, at each step: it leaves no peer, or one that works; never two certificates."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.hosts.hosting import Gate, serving_host
from tests.peers.handshakes import ShiftedClock
from tests.processes import free_port
from tests.remote.handshaking import peering_in, wish_for
from tests.remote.paired import HostProcess
from tests.remote.test_peering import KeptPlans

from agent_gate.hosts import Host
from agent_gate.observe.failpoint import EXIT_CODE, JOINING, PAIRING
from agent_gate.peers.signing import IdentityKey

ROOT = Path(__file__).parents[2]
HOST = "from agent_gate.hosts import Host\nhost = Host('memory')\n"


async def check_what_is_left(folder: Path, endpoint: str, pin: str) -> None:
    """The state after a crash, read by a gateway that starts five minutes later, and a handshake that works then."""
    plans = KeptPlans()
    async with peering_in(folder, plans, ShiftedClock(300.0)) as (store, peering):
        states = [row[0] for row in await store.read("SELECT state FROM peer_certificates")]
        assert states.count("active") <= 1
        assert "issued" not in states
        await peering.start()
        active = peering.peers.active()
        assert len(active) == states.count("active")
        if active:
            assert await plans.added["memory-east"].source.connect() == []
    async with peering_in(folder, plans) as (store, peering):
        await peering.pair(wish_for(endpoint, pin), "operator")
        assert await plans.added["memory-east"].source.connect() == []
        states = [row[0] for row in await store.read("SELECT state FROM peer_certificates")]
        assert states.count("active") == 1


@pytest.mark.parametrize("place", PAIRING)
async def test_p21_a_gateway_that_dies_in_a_handshake(place: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with peering_in(folder, KeptPlans()) as (_store, peering):
        gate = Gate(key=peering.identity.key)
    async with serving_host(Host("memory"), tmp_path / "host", gate) as server:
        assert server.folder is not None
        where = (f"wss://127.0.0.1:{server.server.port}", server.folder.identity.fingerprint)
        dying = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.remote.handshaking", str(folder), *where),
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "AGENT_GATE_FAILPOINT": place},
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert await dying.wait() == EXIT_CODE
        await check_what_is_left(folder, *where)


@pytest.mark.parametrize("place", JOINING)
async def test_p22_a_host_that_dies_in_a_handshake(place: str, tmp_path: Path) -> None:
    folder, port = tmp_path / "data", free_port()
    async with peering_in(folder, KeptPlans()) as (_store, peering):
        key: IdentityKey = peering.identity.key
    (tmp_path / "host.py").write_text(HOST)
    named = ("--name", "memory-east", "--state", "state")
    told = (*named, "--listen", f"127.0.0.1:{port}", "--gateway-key", key.public_text)
    dying = HostProcess(tmp_path, "host.py:host", *told, AGENT_GATE_FAILPOINT=place)
    where = (f"wss://127.0.0.1:{port}", dying.announced["fingerprint"])
    async with peering_in(folder, KeptPlans()) as (_store, peering):
        await asyncio.gather(peering.pair(wish_for(*where), "operator"), return_exceptions=True)
        assert await asyncio.to_thread(dying.wait) == EXIT_CODE
    host = HostProcess(tmp_path, "host.py:host", *told)
    try:
        await check_what_is_left(folder, *where)
    finally:
        assert await asyncio.to_thread(host.stop) == 0

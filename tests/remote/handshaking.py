"""A gateway's part in one handshake, as a program that a test can kill: FOLDER ENDPOINT FINGERPRINT."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.remote.test_peering import KeptPlans
from tests.rows import opened
from tests.toolboxes import toolbox

from agent_gate.core.ports import Clock, SystemClock
from agent_gate.net.pool import Pool
from agent_gate.peers.authority import CertificateSubject
from agent_gate.peers.pairing import Wish
from agent_gate.sources.remote import Peering
from agent_gate.store import Store, StoreSettings
from agent_gate.vault.vault import Vault


@asynccontextmanager
async def peering_in(
    folder: Path, plans: KeptPlans, clock: Clock | None = None
) -> AsyncIterator[tuple[Store, Peering]]:
    clock = clock or SystemClock()
    async with opened(StoreSettings(path=folder / "gate.db")) as store:
        vault = Vault(store, clock, folder, "family", {})
        await vault.open()
        peering = Peering(store, clock, plans, lambda: toolbox(Pool()), tenant="family")
        await peering.open(folder, vault, "home")
        yield store, peering


def wish_for(endpoint: str, pin: str) -> Wish:
    return Wish(CertificateSubject("tool_host", "memory-east"), endpoint, pin)


async def main(folder: Path, endpoint: str, pin: str) -> None:
    async with peering_in(folder, KeptPlans()) as (_store, peering):
        await peering.pair(wish_for(endpoint, pin), "operator")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))

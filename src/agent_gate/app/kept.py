"""What outlives the process: the store, its keys, and what of it is in memory while the gateway runs."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from agent_gate.access.keys import END_SESSIONS, Keys
from agent_gate.access.people import People
from agent_gate.approval.earlier import move_secrets
from agent_gate.approval.grants import Grants
from agent_gate.approval.inbox import Inbox
from agent_gate.audit import Heads, Sealer, ensure_key
from agent_gate.calls.restored import end_what_was_under_way, is_older
from agent_gate.config.configuration import Configuration
from agent_gate.config.filled import store_address
from agent_gate.core.ports import Clock
from agent_gate.sources.pins import Pins
from agent_gate.store import open_store
from agent_gate.store.leases import Leases
from agent_gate.store.statement import Store, StoreSettings
from agent_gate.surfaces.websocket.before import Predecessors
from agent_gate.vault.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """`folder` is where the store is, and the keys beside it."""

    folder: Path
    store: Store
    vault: Vault
    audit_key: bytes
    heads: Heads
    pins: Pins
    inbox: Inbox
    grants: Grants
    predecessors: Predecessors
    keys: Keys

    async def load(self, clock: Clock) -> None:
        """Where the store was restored from an older copy, nothing in it counts that was taken back since."""
        await self.pins.load()
        noted = self.heads.known.get(self.store.chain)
        if await is_older(self.store, noted):
            also = [self.grants.ending_all(), END_SESSIONS]
            await end_what_was_under_way(self.store, self.inbox, clock, noted, also)
        await move_secrets(self.store, self.vault, self.folder)
        await self.grants.load()
        await self.predecessors.load()
        await self.keys.load()


async def open_kept(
    life: AsyncExitStack, configuration: Configuration, clock: Clock, people: People
) -> KeptState:
    """Open the store and read what is needed of it; `life` closes it."""
    settings, env = configuration.settings, configuration.environment()
    storage, folder = settings.storage, settings.storage.path.absolute().parent
    url = store_address(storage.url, configuration.folder, env)
    wanted = StoreSettings(type=storage.type, path=storage.path, url=url, chain=settings.gateway.id)
    store = await asyncio.to_thread(open_store, wanted)
    life.push_async_callback(store.close)
    if storage.type == "sqlite":
        await Leases(store, clock).forget_all()
    vault = Vault(store, clock, folder, settings.gateway.tenant, env)
    await vault.open_or_say_why()
    audit_key = ensure_key(folder / "audit.key")
    heads = Heads(folder / "audit.head", audit_key)
    await life.enter_async_context(Sealer(store, audit_key, clock=clock, heads=heads))
    kept = KeptState(
        folder=folder,
        store=store,
        vault=vault,
        audit_key=audit_key,
        heads=heads,
        pins=Pins(store),
        inbox=Inbox(store, clock, vault),
        grants=Grants(store, clock, people.answers),
        predecessors=Predecessors(store),
        keys=Keys(store, clock),
    )
    await kept.load(clock)
    return kept

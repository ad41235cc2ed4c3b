"""What outlives the process: the store, its keys, and what of it is in memory while the gateway runs."""

import asyncio
import os
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agent_gate import __version__
from agent_gate.access.door import CatchUp
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
from agent_gate.errors import DependencyUnavailable
from agent_gate.peers.leases import END_EVERY_LEASE
from agent_gate.sources.pins import Pins
from agent_gate.store import open_store
from agent_gate.store.alone import AloneLeases
from agent_gate.store.clock import GatewayClock
from agent_gate.store.gateways import STOPPED, Gateways
from agent_gate.store.leases import Leases
from agent_gate.store.notices import StoreNotices
from agent_gate.store.statement import Store, StoreSettings
from agent_gate.store.words import GatewayWords
from agent_gate.surfaces.mcp.sessions.shared import SharedSessions
from agent_gate.surfaces.websocket.before import Predecessors, SharedPredecessors
from agent_gate.vault.shared import say_same_key, share_key
from agent_gate.vault.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """`folder` is where the store is, and the keys beside it."""

    folder: Path
    store: Store
    vault: Vault
    audit_key: bytes
    heads: Heads
    sealer: Sealer
    pins: Pins
    inbox: Inbox
    grants: Grants
    predecessors: Predecessors
    keys: Keys
    gateways: Gateways
    notices: StoreNotices
    words: GatewayWords
    alone: AloneLeases
    sessions: SharedSessions | None
    state_key: bytes
    button_key: bytes
    login_key: bytes
    errand_key: bytes
    cut_key: bytes

    def catch_up_with(self, *topics: str) -> CatchUp | None:
        """How to hear what other gateways did, where there may be others."""
        return partial(self.notices.catch_up, *topics) if self.store.shared else None

    async def load(self, clock: Clock) -> None:
        """Where the store was restored from an older copy, nothing in it counts that was taken back since."""
        await self.pins.load()
        noted = self.heads.known.get(self.store.chain)
        if await is_older(self.store, noted):
            also = [self.grants.ending_all(), END_SESSIONS, END_EVERY_LEASE]
            await end_what_was_under_way(self.store, self.inbox, clock, noted, also, self.gateways.is_alive)
        await move_secrets(self.store, self.vault, self.folder)
        await self.grants.load()
        await self.predecessors.load()
        await self.keys.load()


def name_of_heads(worker: int | None) -> str:
    """The note of seals; workers share a folder, and each writes its own."""
    return "audit.head" if worker is None else f"audit-{worker}.head"


async def open_kept(
    life: AsyncExitStack, configuration: Configuration, clock: GatewayClock, people: People
) -> KeptState:
    """Open the store and read what is needed of it; `life` closes it."""
    settings = configuration.settings
    folder = settings.storage.path.absolute().parent
    store = await open_records(life, configuration, clock)
    gateways, notices, words = (
        Gateways(store, clock, __version__),
        StoreNotices(store, clock),
        GatewayWords(store),
    )
    await gateways.join()
    life.push_async_callback(leave, gateways)
    alone = AloneLeases(store, clock)
    life.push_async_callback(alone.close)
    await notices.begin()
    await words.begin()
    vault = Vault(store, clock, folder, settings.gateway.tenant, configuration.environment())
    await vault.open_or_say_why()
    say_same_key(vault, store, folder)
    audit_key = ensure_key(folder / "audit.key")
    heads = Heads(folder / name_of_heads(configuration.options.worker), audit_key)
    sealer = await life.enter_async_context(Sealer(store, audit_key, clock=clock, heads=heads))
    state_key = await share_key(vault, store, "states", ensure_key(folder / "seal.key"))
    kept = KeptState(
        folder=folder,
        store=store,
        vault=vault,
        audit_key=audit_key,
        heads=heads,
        sealer=sealer,
        pins=Pins(store),
        inbox=Inbox(store, clock, vault, gateways.serves),
        grants=Grants(store, clock, people.answers),
        predecessors=SharedPredecessors(store, gateways) if store.shared else Predecessors(store),
        keys=Keys(store, clock),
        gateways=gateways,
        notices=notices,
        words=words,
        alone=alone,
        sessions=SharedSessions(store, clock, words, gateways, state_key) if store.shared else None,
        state_key=state_key,
        button_key=await share_key(vault, store, "buttons", ensure_key(folder / "channels.key")),
        cut_key=await share_key(vault, store, "cuts", os.urandom(32)),
        errand_key=await share_key(vault, store, "errands", os.urandom(32)),
        login_key=await share_key(vault, store, "logins", ensure_key(folder / "login.key")),
    )
    await kept.load(clock)
    return kept


async def open_records(life: AsyncExitStack, configuration: Configuration, clock: GatewayClock) -> Store:
    """The store that the settings name, whose time is ours from then on."""
    storage, chain = configuration.settings.storage, configuration.settings.gateway.id
    url = store_address(storage.url, configuration.folder, configuration.environment())
    wanted = StoreSettings(type=storage.type, path=storage.path, url=url, chain=chain)
    store = await asyncio.to_thread(open_store, wanted)
    life.push_async_callback(store.close)
    await clock.follow(store)
    if not store.shared:
        await Leases(store, clock).forget_all()
    return store


async def leave(gateways: Gateways) -> None:
    """Say that this gateway is gone, so that others need not wait for the end of its lease."""
    with suppress(DependencyUnavailable):
        await gateways.say(STOPPED)

"""This gateway among others on its store: it says that it lives, hears what they change, and does what the dead left.

A gateway that has its store alone does none of it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from agent_gate.access.quota import Quota
from agent_gate.access.usage import SharedUsage
from agent_gate.calls.recovery import TakingOver
from agent_gate.calls.sweeper import HOUR, Sweeper
from agent_gate.errors import DependencyUnavailable, InvalidArgs
from agent_gate.sources.accounts.credentials import OF_SOURCE
from agent_gate.sources.accounts.signins import WELL
from agent_gate.store.gateways import BEAT_SECONDS, DRAINING
from agent_gate.store.leases import Leases
from agent_gate.vault.accounts import FIELD

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway

log = logging.getLogger("agent_gate.app")
OF_AGENTS, SECRET = ("agent:", "person:"), "secret:"
FEW_MINUTES = 300.0


class Fellowship:
    """What is cached in memory, and who is told when another gateway changed it in the store."""

    def __init__(self, gateway: "Gateway", sweeper: Sweeper, counters: dict[str, Quota]) -> None:
        kept = gateway.kept
        self._gateway, self._gateways, self._notices = gateway, kept.gateways, kept.notices
        self._taking_over = TakingOver(gateway.calls, kept.store, kept.inbox, gateway.clock, kept.gateways)
        if not kept.store.shared:
            return
        heard = {
            "approvals": gateway.calls.hear_questions,
            "results": gateway.calls.hear_results,
            "grants": lambda _callers: kept.grants.load(),
            "tokens": self._hear_tokens,
            "sign_in": lambda _names: gateway.sign_in.signed_in.load(),
            "pins": gateway.supervisor.take_news,
            "vault": self._hear_vault,
            "peers": lambda _names: gateway.accounts.peering.refresh(),
            "peer_leases": lambda idents: gateway.ways_in.peers.leases.hear(idents),
            "gateways": lambda _ids: self._taking_over.look(),
            "sessions": self._hear_sessions,
            "errands": gateway.errands.hear,
            "words": kept.words.hear,
            "listings": self._hear_listings,
        }
        for topic, hear in heard.items():
            kept.notices.subscribe(topic, hear)
        kept.alone.changed = self._restart
        sweeper.run_every(BEAT_SECONDS, self._beat)
        sweeper.run_every(BEAT_SECONDS, self._taking_over.finish_agreed)
        sweeper.run_every(BEAT_SECONDS, kept.alone.look)
        sweeper.run_every(BEAT_SECONDS, lambda: gateway.clock.follow(kept.store))
        sweeper.run_every(BEAT_SECONDS, gateway.errands.look)
        sweeper.run_every(HOUR, gateway.errands.purge)
        sweeper.run_every(HOUR, kept.words.purge)
        sweeper.run_every(HOUR, Leases(kept.store, gateway.clock).forget_over)
        sweeper.run_every(FEW_MINUTES, kept.notices.purge)
        sweeper.run_every(HOUR, kept.gateways.forget_old)
        usage = SharedUsage(kept.store, counters)
        sweeper.run_every(BEAT_SECONDS, usage.exchange)
        sweeper.run_every(HOUR, usage.purge)
        if kept.sessions is not None:
            sweeper.run_every(HOUR, kept.sessions.purge)

    def _restart(self, key: str) -> None:
        """A source is this gateway's to run now, or is not any more; where it is gone, nothing is."""
        keeper = self._gateway.supervisor.keepers.get(key)
        if keeper is None:
            return
        if keeper.state().status in WELL:
            self._gateway.supervisor.connect_anew(key)
            return
        with suppress(InvalidArgs):
            self._gateway.supervisor.reconnect(key)

    async def begin(self, life: AsyncExitStack) -> None:
        """Hear the others from now on; `life` ends it."""
        await self._beat()
        hearing = asyncio.ensure_future(self._notices.run())

        async def end() -> None:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

        life.push_async_callback(end)

    async def _beat(self) -> None:
        await self._gateways.beat(self._gateway.listeners.announcement()["url"], self._load())
        await self._taking_over.look()

    def _load(self) -> dict[str, Any]:
        gateway = self._gateway
        return {
            "running": len(gateway.calls.running()),
            "sources": dict(Counter(str(state.status) for state in gateway.supervisor.states())),
            "tools": len(gateway.supervisor.shelf.catalog.tools),
            "lag": self._notices.lag,
        }

    async def drain(self) -> None:
        """Tell the others and whoever asks `/ready` that this gateway stops, for as long as the settings say."""
        gateway = self._gateway
        gateway.ways_in.health.drain()
        try:
            await self._gateways.say(DRAINING)
        except DependencyUnavailable as error:
            log.info("The other gateways are not told that this one stops: %s", error.message)
        await asyncio.sleep(gateway.settings.limits.announce)

    async def _hear_tokens(self, names: Collection[str] | None) -> None:
        """Agents have the groups of their persons, who may have logged in elsewhere."""
        await self._gateway.kept.keys.load()
        if names is None or any(name.startswith(OF_AGENTS) for name in names):
            self._gateway.refresh_agents()

    async def _hear_listings(self, keys: Collection[str] | None) -> None:
        """The tools of a source that another gateway runs may be others now."""
        supervisor = self._gateway.supervisor
        for key, keeper in list(supervisor.keepers.items()):
            single = keeper.plan.single
            if single is None or single.runs_here or not (keys is None or key in keys):
                continue
            if keeper.state().status in WELL:
                await supervisor.announce(key, await single.read_listing())
            else:
                supervisor.reconnect(key)

    async def _hear_sessions(self, idents: Collection[str] | None) -> None:
        self._gateway.ways_in.mcp.end_sessions(idents)

    async def _hear_vault(self, owners: Collection[str] | None) -> None:
        accounts = self._gateway.accounts
        if owners is None:
            owners = [*accounts.custody.accounts.owners(), *await self._list_owners()]
        for owner in set(owners):
            if owner.startswith(SECRET):
                accounts.custody.secrets.note_change()
                accounts.secret_changed(owner.removeprefix(SECRET))
            elif owner.startswith(OF_SOURCE):
                await accounts.sign_ins.hear(owner)

    async def _list_owners(self) -> list[str]:
        return list(await self._gateway.kept.vault.read_all(FIELD))

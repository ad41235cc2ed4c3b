"""Every surface of a gateway, made of its parts, and who may come in by them."""

import asyncio
import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from agent_gate.access.door import Door
from agent_gate.access.issuers import Issuers
from agent_gate.access.login import LoginLink, Logins
from agent_gate.access.passphrase import Passphrases
from agent_gate.access.people import OPERATOR, People
from agent_gate.access.quota import LOOKS, Quota
from agent_gate.access.tokens import Credential, Tokens
from agent_gate.access.view import View
from agent_gate.app.ended_sessions import EndedSessions
from agent_gate.app.fellowship import Fellowship
from agent_gate.app.keeping import RecordKeeping
from agent_gate.app.peers_way import PeersWay
from agent_gate.app.reload import Reload
from agent_gate.audit.counting import Trends
from agent_gate.calls.meta import MetaTools
from agent_gate.calls.sweeper import HOUR, Sweeper
from agent_gate.core.call import Mode
from agent_gate.discovery.semantic import load as load_semantic
from agent_gate.discovery.tokens import fits
from agent_gate.results.artifacts import Artifacts
from agent_gate.results.readers import Readers
from agent_gate.store.leases import Leases
from agent_gate.surfaces.admin.admin import (
    Admin,
    Entrusted,
    Fellows,
    Ledger,
    Numbers,
    Setup,
    WhoComesIn,
)
from agent_gate.surfaces.admin.policy_faults import PolicyFaults
from agent_gate.surfaces.admin.surface import AdminSurface
from agent_gate.surfaces.mcp import McpSurface
from agent_gate.surfaces.mcp.modes.meta import MetaMode
from agent_gate.surfaces.paths import Paths
from agent_gate.surfaces.rest import RestSurface
from agent_gate.surfaces.rest.health import Health
from agent_gate.surfaces.typescript.surface import TypeScriptSurface
from agent_gate.surfaces.websocket.methods import meta_tools
from agent_gate.surfaces.websocket.surface import WebSocketSurface
from agent_gate.surfaces.websocket.undelivered import Undelivered

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway

MINUTE, SOON = 60.0, 5.0
META_MODES: tuple[Mode, ...] = ("proxy", "gateway")


class LargeResults(NamedTuple):
    """Where results are kept that are too large for their callers, and what reads them."""

    artifacts: Artifacts
    readers: Readers


class WaysIn:
    """The surfaces that agents, people and paired components come in by, and what other gateways bring."""

    def __init__(
        self,
        gateway: "Gateway",
        tokens: Tokens,
        issuers: Issuers,
        results: LargeResults,
        people: People,
        policy_faults: PolicyFaults,
        sweeper: Sweeper,
    ) -> None:
        clock, looks = gateway.clock, Quota(gateway.clock, "looks at tools and results", LOOKS)
        self.tokens, self.issuers = tokens, issuers
        self.reload = Reload(gateway, policy_faults)
        self.door = Door(tokens, clock, gateway.kept.catch_up_with("tokens", "sign_in"))
        self.view = View(gateway.supervisor.shelf, lambda: gateway.in_force.terms.policy)
        self.meta = self._make_meta(gateway, results, looks)
        self.health = Health(
            gateway.supervisor.states, gateway.supervisor.unready, lambda: gateway.kept.store.fault
        )
        self.ended = EndedSessions(gateway.calls, gateway.supervisor)
        self.rest = RestSurface(gateway.calls, self.door, self.view, self.meta)
        self.websocket = self._make_websocket(gateway)
        self.mcp = self._make_mcp(gateway)
        self.paths = self._make_paths(gateway)
        self.peers = PeersWay(gateway)
        sweeper.run_every(MINUTE, issuers.refresh)
        sweeper.run_every(SOON, self.forget_ended)
        sweeper.run_every(MINUTE, self._end_idle_sessions)
        self.operators = OperatorsWay(gateway, self, people, policy_faults, sweeper)
        self.fellowship = Fellowship(gateway, sweeper, {"calls": gateway.calls.counter, "looks": looks})

    def _make_meta(self, gateway: "Gateway", results: LargeResults, looks: Quota) -> MetaTools:
        return MetaTools(
            gateway.calls,
            gateway.supervisor.shelf,
            self.view.tools,
            results.artifacts,
            fits,
            load_semantic,
            looks.take,
            results.readers,
        )

    def _make_websocket(self, gateway: "Gateway") -> WebSocketSurface:
        kept, clock = gateway.kept, gateway.clock
        return WebSocketSurface(
            calls=gateway.calls,
            door=self.door,
            visible=self.view.tools,
            keep=Undelivered(kept.store, gateway.supervisor.shelf, clock).keep,
            before=kept.predecessors,
            clock=clock,
            extra=meta_tools(self.meta),
            session_over=self.ended.end,
        )

    def _make_paths(self, gateway: "Gateway") -> Paths:
        shelf = gateway.supervisor.shelf
        typescript = TypeScriptSurface(self.door.enter, lambda: shelf.catalog, self.view.tools)
        return Paths(
            self.mcp,
            self.rest,
            typescript,
            self.health,
            self.door,
            self.issuers,
            gateway.sign_in.surface(),
        )

    def _make_mcp(self, gateway: "Gateway") -> McpSurface:
        hold = gateway.settings.limits.hold
        return McpSurface(
            gateway.calls,
            self.door,
            gateway.supervisor.shelf,
            gateway.supervisor.contexts,
            self.view.tools,
            seal_key=gateway.kept.state_key,
            denies=lambda read, arguments, caller: gateway.in_force.terms.policy.denies(
                read, arguments, caller.name, caller.person, caller.groups
            ),
            modes={name: MetaMode(name, self.meta, gateway.calls, hold) for name in META_MODES},
            clock=gateway.clock,
            hold=hold,
            issuer=gateway.sign_in.issuer,
            shared=gateway.kept.sessions,
            session_over=self.ended.end,
        )

    def admit(self, agents: list[Credential]) -> None:
        """Let these in and nobody else; what was kept for those who are gone is forgotten."""
        self.tokens.replace(agents)
        self.websocket.refresh()
        self.mcp.refresh()
        self._forget_others()

    async def forget_ended(self) -> None:
        """End what was opened with tokens of other issuers whose time is over."""
        if self.issuers.forget_ended():
            self.websocket.refresh()
            self.mcp.refresh()
            self._forget_others()

    async def _end_idle_sessions(self) -> None:
        self.mcp.sessions.expire()

    def _forget_others(self) -> None:
        callers = set(self.tokens.callers())
        names = {caller.name for caller in callers}
        self.view.keep(callers)
        self.meta.keep(names)
        self.rest.keep(names)
        self.mcp.lists.keep(names)
        self.ended.keep(names)

    async def drain(self, gateway: "Gateway", left: Callable[[], float]) -> None:
        """Take nothing more, and answer what is under way while there is time left."""
        self.health.drain()
        await asyncio.gather(self.websocket.drain(left()), gateway.calls.drain(left()))
        await gateway.errands.drain(left())
        await self.mcp.close(left())
        await self.ended.tasks.cancel()
        await gateway.listeners.drain(left())


class OperatorsWay:
    """The way in of people: the page, its API and the admin socket."""

    def __init__(
        self,
        gateway: "Gateway",
        ways_in: WaysIn,
        people: People,
        policy_faults: PolicyFaults,
        sweeper: Sweeper,
    ) -> None:
        kept, clock = gateway.kept, gateway.clock
        cookie, catch_up = name_cookie(kept.state_key), kept.catch_up_with("tokens")
        self._logins = Logins(kept.keys, clock, people.known, cookie, catch_up)
        self._people_url = gateway.listeners.people_url
        self._keys, self._vouching = kept.keys, gateway.sign_in.vouching
        trends = Trends(kept.store, gateway.metrics, clock)
        keeping = RecordKeeping(kept, clock, lambda: gateway.settings.audit.retention)
        sweeper.run_every(MINUTE, self._vouching.sessions.look_again)
        sweeper.run_every(MINUTE, trends.note)
        sweeper.run_every(HOUR, self._forget_logins)
        sweeper.run_every(HOUR, keeping.keep)
        admin = Admin(
            calls=gateway.calls,
            grants=kept.grants,
            clock=clock,
            shelf=gateway.supervisor.shelf,
            view=ways_in.view,
            sources=gateway.supervisor,
            peering=gateway.accounts.peering,
            pushing=gateway.asking_people.pushing,
            feed=ways_in.peers.feed,
            who=self._who_comes_in(gateway, ways_in, people),
            record=Ledger(
                store=kept.store,
                audit_key=kept.audit_key,
                cut_key=kept.cut_key if kept.store.shared else None,
                heads=kept.heads,
                cut=keeping.cut,
            ),
            numbers=Numbers(metrics=gateway.metrics, trends=trends),
            setup=setup_of(gateway, policy_faults),
            secrets=entrusted_to(gateway),
            others=Fellows(gateways=kept.gateways, leases=Leases(kept.store, clock)),
        )
        self.surface: AdminSurface = AdminSurface(admin, gateway.asking_people.buttons, gateway.pool)

    def _who_comes_in(self, gateway: "Gateway", ways_in: WaysIn, people: People) -> WhoComesIn:
        return WhoComesIn(
            keys=self._keys,
            people=people,
            logins=self._logins,
            passphrases=Passphrases(gateway.clock, people.passphrase),
            vouching=self._vouching,
            callers=ways_in.tokens.callers,
            refresh_agents=gateway.refresh_agents,
            sign_in=gateway.sign_in.desk,
            issuer=gateway.sign_in.issuer,
        )

    async def make_login_url(self) -> str:
        """A fresh one-time link to the operator's page."""
        return f"{self._people_url()}/login#{await self._logins.offer(LoginLink(OPERATOR))}"

    async def _forget_logins(self) -> None:
        await self._vouching.sessions.forget_over()
        await self._keys.purge()


def setup_of(gateway: "Gateway", policy_faults: PolicyFaults) -> Setup:
    return Setup(
        configuration=gateway.configuration,
        listeners=gateway.listeners,
        policy=lambda: gateway.in_force.terms.policy,
        policy_faults=policy_faults,
        channel_faults=gateway.asking_people.faults,
        reload=gateway.reload,
    )


def entrusted_to(gateway: "Gateway") -> Entrusted:
    return Entrusted(
        custody=gateway.accounts.custody,
        sign_ins=gateway.accounts.sign_ins,
        changed=gateway.accounts.secret_changed,
        uses=gateway.accounts.secret_uses,
        mask=gateway.redactor.known,
        has_account=gateway.accounts.has_account,
    )


def name_cookie(key: bytes) -> str:
    """The name of the page's cookie: one for all gateways with this key, whatever port each has; another for the next
    gateway on the same host, since ports share cookies."""
    return f"agent_gate_{hmac.digest(key, b'cookie of the page', 'sha256').hex()[:8]}"

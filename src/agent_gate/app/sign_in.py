"""Signing in, made of its parts: clients and sign-ins in the store, the source that acts on a yes, the surface; and
people at a provider."""

import hmac
from typing import TYPE_CHECKING

from agent_gate.access.oidc.flows import SealedFlows
from agent_gate.access.sign_in.clients import SignInClients
from agent_gate.access.sign_in.consents import SignInsBegun
from agent_gate.access.sign_in.desk import KEY, WIRE, SignInDesk
from agent_gate.access.sign_in.documents import ClientDocuments
from agent_gate.access.sign_in.families import SignedIn, SignedInAgent, TokenFamily
from agent_gate.access.sign_in.request import MCP_PATHS
from agent_gate.app.vouching import Vouching
from agent_gate.calls.sweeper import HOUR, Sweeper
from agent_gate.config.settings import AgentSettings
from agent_gate.core.approval import Approval
from agent_gate.core.call import Caller, State
from agent_gate.net.addresses import is_loopback
from agent_gate.net.http import Request
from agent_gate.sources.agents.source import AgentsSource, plan
from agent_gate.surfaces.oauth.authorize import AuthorizePages
from agent_gate.surfaces.oauth.endpoints import OAuthEndpoints
from agent_gate.surfaces.oauth.grants import AssertionGrant
from agent_gate.surfaces.oauth.logins import LoginPages
from agent_gate.surfaces.oauth.surface import OAuthSurface
from agent_gate.vault.oauth.reach import Web

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway

SECOND, MINUTE = 1.0, 60.0


class GatewaySignIn:
    """`signed_in` is loaded before anybody comes in; the source is offered while the configuration says so."""

    def __init__(self, gateway: "Gateway", web: Web) -> None:
        self._gateway = gateway
        store, clock = gateway.kept.store, gateway.clock
        self.signed_in = SignedIn(store, clock, self._audience, self._likeness, self._look_at)
        self.vouching = Vouching(gateway, web, self.signed_in)
        self.desk = SignInDesk(
            SignInClients(store, clock, ClientDocuments(web, clock, self._reads_documents)),
            SignInsBegun(store, clock, hmac.digest(gateway.kept.state_key, b"codes", "sha256")),
            self.signed_in,
            clock,
            self._taken,
            self.vouching.people.allowance,
            gateway.kept.catch_up_with("tokens"),
        )
        self._source = AgentsSource(self.desk, gateway.kept.inbox.get)

    async def _look_at(self, family: TokenFamily, agent: SignedInAgent) -> SignedInAgent:
        return await self.vouching.sign_ins.look_at(family, agent)

    def issuer(self) -> str | None:
        """Who gives the tokens, as documents name it; None while nobody can sign in."""
        return self._gateway.listeners.issuer()

    def _audience(self, resource: str) -> str | None:
        """The path of a resource of this gateway; None for one under another address. Before the listener is up its own
        address is not known, and nobody can come in yet."""
        issuer = self.issuer()
        if issuer is None and self._gateway.settings.auth.sign_in:
            issuer = resource.rpartition("/mcp")[0]
        paths = {f"{issuer}{path}": path for path in MCP_PATHS} if issuer else {}
        return paths.get(resource)

    def _reads_documents(self) -> bool:
        return self._gateway.settings.auth.client_documents

    def _likeness(self) -> Caller:
        settings = self._gateway.settings
        return AgentSettings(rate_limit=settings.rate_limit).caller()

    def _taken(self, name: str) -> bool:
        return (
            name in self._gateway.settings.agents or self._gateway.kept.keys.named("agent", name) is not None
        )

    def surface(self) -> OAuthSurface:
        gateway, key = self._gateway, self._gateway.kept.state_key
        logins = LoginPages(
            self.desk,
            gateway.calls,
            gateway.clock,
            self.vouching,
            SealedFlows(hmac.digest(key, b"login of a sign-in", "sha256")),
        )
        pages = AuthorizePages(
            self.desk,
            gateway.calls,
            gateway.kept.inbox,
            gateway.clock,
            hmac.digest(key, b"sign-in", "sha256"),
            self._question_url,
            logins,
        )
        grant = AssertionGrant(self.desk, gateway.calls, gateway.clock, self.vouching)
        endpoints = OAuthEndpoints(self.desk, self.vouching.client_assertions, grant)
        taken = self.vouching.assertions.are_taken
        return OAuthSurface(self.issuer, pages, endpoints, self._reads_documents, taken)

    def _question_url(self, request: Request, approval_id: str) -> str | None:
        """Where this browser can see the question: under the address for other devices, or on this machine."""
        base = self._gateway.listeners.people_url()
        reached = self._gateway.settings.admin.public_url is not None or is_loopback(request.peer)
        return f"{base}/#/approvals/{approval_id}" if reached else None

    async def start(self, sweeper: Sweeper) -> None:
        self.signed_in.subscribe(self._gateway.refresh_agents)
        self._gateway.calls.take_terms(self.desk.check_terms)
        self._gateway.kept.inbox.subscribe(self._heard)
        await self.offer()
        sweeper.run_every(SECOND, self.signed_in.forget_ended)
        sweeper.run_every(HOUR, self.signed_in.purge)
        sweeper.run_every(HOUR, self.desk.begun.forget_old)
        sweeper.run_every(HOUR, self.desk.clients.forget_unused)
        sweeper.run_every(MINUTE, self.vouching.sign_ins.end_of_others)
        sweeper.run_every(HOUR, self.vouching.once.forget_ended)

    def _heard(self, approval: Approval) -> None:
        """A sign-in to which nobody says yes is over, and its place is free for another."""
        if approval.asked.wire == WIRE and approval.state in (State.DENIED, State.EXPIRED, State.WITHDRAWN):
            self._gateway.accounts.tasks.start(self.desk.begun.end(str(approval.arguments["sign_in"])))

    async def offer(self) -> None:
        """The source that a sign-in is a call of, while anybody can sign in."""
        supervisor = self._gateway.supervisor
        if not self._gateway.settings.auth.sign_in:
            await supervisor.remove(KEY)
        elif supervisor.source(KEY) is None:
            await supervisor.add(plan(self._source))

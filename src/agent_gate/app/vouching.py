"""People who log in at an OpenID provider, as the configuration in use names it."""

from typing import TYPE_CHECKING

from agent_gate.access.jwt.once import UsedOnce
from agent_gate.access.oidc.assertions import IdentityAssertions
from agent_gate.access.oidc.flows import SealedFlows
from agent_gate.access.oidc.people import VouchedPeople
from agent_gate.access.oidc.provider import OidcProvider
from agent_gate.access.oidc.sessions import ProviderSessions
from agent_gate.access.oidc.sign_ins import VouchedSignIns
from agent_gate.access.sign_in.assertions import ClientAssertions
from agent_gate.access.sign_in.families import SignedIn
from agent_gate.approval.channels.make import channel_people
from agent_gate.config.oidc import OidcSettings
from agent_gate.errors import Unauthorized
from agent_gate.store.leases import Leases
from agent_gate.vault.oauth.reach import Web

if TYPE_CHECKING:
    from agent_gate.app.gateway import Gateway


class Vouching:
    """Reads the settings each time, so that a reload counts at once."""

    def __init__(self, gateway: "Gateway", web: Web, signed_in: SignedIn) -> None:
        self._gateway, self._web = gateway, web
        self._provider: OidcProvider | None = None
        self.people = VouchedPeople(
            gateway.kept.keys,
            lambda: self._settings,
            lambda: gateway.settings.people,
            lambda name: name in channel_people(gateway.settings.channels),
            gateway.refresh_agents,
        )
        kept, clock = gateway.kept, gateway.clock
        leases = Leases(kept.store, clock)
        self.sessions = ProviderSessions(kept.keys, kept.vault, leases, clock, self.people, self.provider)
        self.sign_ins = VouchedSignIns(signed_in, kept.vault, leases, clock, self.people, self.provider)
        self.once = UsedOnce(kept.store, clock)
        self.client_assertions = ClientAssertions(self.once, clock, web)
        self.assertions = IdentityAssertions(self.provider, self.people, self.once)
        self.flows = SealedFlows(kept.login_key)

    @property
    def _settings(self) -> OidcSettings | None:
        return self._gateway.settings.auth.oidc

    @property
    def seconds(self) -> float:
        """How long a login lasts."""
        return self._settings.session if self._settings is not None else 0.0

    async def end_by_provider(self, logout_token: str) -> int:
        """End what the provider says is over: sessions of the page, and sign-ins of agents; how many."""
        provider = self.provider()
        if provider is None:
            raise Unauthorized("This gateway knows no OpenID provider. See auth.oidc")
        ended = await provider.read_logout(logout_token, self.once)
        return await self.sessions.end_by_provider(ended) + await self.sign_ins.end_by_provider(ended)

    def provider(self) -> OidcProvider | None:
        """The provider of the settings in use."""
        settings = self._settings
        if settings is None:
            self._provider = None
        elif self._provider is None or self._provider.client != settings:
            self._provider = OidcProvider(self._web, self._gateway.clock, settings)
        return self._provider

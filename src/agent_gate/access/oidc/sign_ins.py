"""Sign-ins of agents that came of a login at the provider: what it takes back ends here too, at once or at the next
refresh."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import msgspec

from agent_gate.access.jwt.claims import moment
from agent_gate.access.jwt.reading import read_token
from agent_gate.access.oidc.people import VouchedPeople
from agent_gate.access.oidc.provider import Ended, OidcProvider, Vouched
from agent_gate.access.sign_in.consents import ProvedPerson
from agent_gate.access.sign_in.families import SignedIn, SignedInAgent, TokenFamily, VouchedLogin
from agent_gate.access.sign_in.faults import dead_grant
from agent_gate.core.credentials import PERSON
from agent_gate.core.ports import Clock
from agent_gate.errors import Forbidden, GatewayError, Unauthorized
from agent_gate.store.leases import Leases
from agent_gate.vault.oauth.tokens import OAuthRefusal, OAuthTokens
from agent_gate.vault.vault import Vault

log = logging.getLogger("agent_gate.access")
FIELD = "provider tokens"
SHOWN_SECONDS = 30.0
LEASE_SECONDS, WAIT_SECONDS = 15.0, 8.0
"""A provider that turns its refresh tokens over ends all of a login where two ask with the same one."""


class VouchedSignIns:
    """`provider` is the one in use. Its tokens are in the vault, under the sign-in that they came with."""

    def __init__(
        self,
        signed_in: SignedIn,
        vault: Vault,
        leases: Leases,
        clock: Clock,
        people: VouchedPeople,
        provider: Callable[[], OidcProvider | None],
    ) -> None:
        self._signed_in, self._vault, self._leases = signed_in, vault, leases
        self._clock, self._people, self._provider = clock, people, provider

    async def take(self, sign_in: str, vouched: Vouched) -> ProvedPerson:
        """Keep what the provider says of whoever logged in for a sign-in; raises where they may have no agents here."""
        person = await self._people.keep_for_agents(vouched)
        await self._keep_tokens(sign_in, vouched.tokens)
        return ProvedPerson(
            person=person,
            issuer=vouched.issuer,
            subject=vouched.subject,
            session=vouched.session,
            groups=tuple(sorted(vouched.groups)),
        )

    async def _keep_tokens(self, sign_in: str, tokens: OAuthTokens) -> None:
        if self._vault.is_open and (tokens.refresh_token or tokens.id_token):
            kept = msgspec.structs.replace(tokens, access_token="")
            await self._vault.put(owner(sign_in), FIELD, msgspec.json.encode(kept))

    async def _read_tokens(self, sign_in: str) -> OAuthTokens | None:
        kept = await self._vault.get(owner(sign_in), FIELD) if self._vault.is_open else None
        return msgspec.json.decode(kept.value, type=OAuthTokens) if kept is not None else None

    async def look_at(self, family: TokenFamily, agent: SignedInAgent) -> SignedInAgent:
        """The agent as its person's groups let it be now; where the provider does not vouch for them any more, the
        family ends."""
        login = family.vouched
        assert login is not None
        try:
            await self._ask(login, agent.person)
            return self._fitted(agent)
        except (OAuthRefusal, Unauthorized, Forbidden) as error:
            await self._end(family, error.message)
            raise dead_grant() from None

    async def _ask(self, login: VouchedLogin, person: str) -> None:
        """Ask the provider about a person, where it gave a token for that."""
        provider = self._provider()
        if provider is None or provider.client.issuer != login.issuer:
            raise Forbidden("its provider is not the one in use")
        async with self._leases.held(f"login:{login.sign_in}", LEASE_SECONDS, WAIT_SECONDS) as ours:
            tokens = await self._read_tokens(login.sign_in) if ours else None
            if tokens is None or tokens.refresh_token is None:
                return
            try:
                found, fresh = await provider.renew(tokens, login.subject)
            except (OAuthRefusal, Unauthorized):
                raise
            except GatewayError as error:
                log.warning("A provider could not be asked", extra={"why": error.message})
                return
            await self._keep_tokens(login.sign_in, fresh)
            if found is not None and await self._people.keep_for_agents(found) != person:
                raise Forbidden("the provider knows them by another name now")

    async def find_identity(self, holder: str) -> str:
        """The provider's word for a person who has accounts (an ID token), to be shown to a server that takes it; empty
        where none is good for a while, and none can be had."""
        if not holder.startswith(PERSON):
            return ""
        person = holder.removeprefix(PERSON)
        for login in reversed(self._logins_of(person)):
            if found := await self._read_identity(login):
                return found
            with suppress(OAuthRefusal, Unauthorized, Forbidden):
                await self._ask(login, person)
            if found := await self._read_identity(login):
                return found
        return ""

    def _logins_of(self, person: str) -> list[VouchedLogin]:
        """The logins by which agents of a person are here, the last one at the end."""
        names = {agent.name for agent in self._signed_in.agents() if agent.person == person}
        families = [one for one in self._signed_in.families() if one.agent in names]
        return [one.vouched for one in families if one.vouched is not None]

    async def _read_identity(self, login: VouchedLogin) -> str:
        tokens = await self._read_tokens(login.sign_in)
        return tokens.id_token or "" if tokens is not None and self._is_good(tokens.id_token) else ""

    def _is_good(self, id_token: str | None) -> bool:
        """Whether a token that was checked when it came lasts long enough to be shown."""
        ends = moment(read_token(id_token).claims, "exp") if id_token else None
        return ends is not None and ends > self._clock.now() + SHOWN_SECONDS

    def _fitted(self, agent: SignedInAgent) -> SignedInAgent:
        """What was given by groups is what they give now; what people said yes to stays."""
        if not agent.terms.own:
            return agent
        allowed = self._people.allowance(self._people.groups_vouched(agent.person))
        if allowed is None:
            raise Forbidden("no group of its person lets agents in any more")
        spaces = allowed.left_of(agent.terms.namespaces)
        if spaces == ():
            raise Forbidden("no group of its person gives any of its sources any more")
        terms = msgspec.structs.replace(agent.terms, namespaces=spaces, mode=allowed.mode)
        return replace(agent, terms=terms)

    async def end_by_provider(self, ended: Ended) -> int:
        """What a logout at the provider ends here."""
        await self._signed_in.load()
        found = [one for one in self._signed_in.families() if is_meant(one.vouched, ended)]
        for family in found:
            await self._end(family, "the provider ended it")
        return len(found)

    async def end_of_others(self) -> None:
        """End what came of a provider that is not in use any more."""
        provider = self._provider()
        issuer = provider.client.issuer if provider is not None else None
        for family in self._signed_in.families():
            if family.vouched is not None and family.vouched.issuer != issuer:
                await self._end(family, "its provider is not the one in use")

    async def _end(self, family: TokenFamily, why: str) -> None:
        await self._signed_in.revoke_family(family.id)
        if family.vouched is not None and self._vault.is_open:
            await self._vault.remove(owner(family.vouched.sign_in), FIELD)
        log.info("A sign-in has ended", extra={"agent": family.agent, "why": why})


def owner(sign_in: str) -> str:
    return f"sign-in:{sign_in}"


def is_meant(login: VouchedLogin | None, ended: Ended) -> bool:
    return login is not None and ended.means(login.subject, login.session)

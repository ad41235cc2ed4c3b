"""Connected accounts: the tokens of each, sealed in the vault, renewed in time and by one process at a time.

The new refresh token is durable before the new access token is used. Whoever finds that its token was refused looks
first whether somebody else renewed it; only then is it renewed, and only a server's own no ends it.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec.structs import replace

from agent_gate.core.credentials import SignInNeeded
from agent_gate.core.ports import Clock
from agent_gate.errors import DependencyUnavailable
from agent_gate.observe import failpoint
from agent_gate.store.leases import Leases
from agent_gate.store.statement import Conflict
from agent_gate.vault.oauth.clients import OAuthClient
from agent_gate.vault.oauth.discovery import AuthorizationServer
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Web
from agent_gate.vault.oauth.tokens import OAuthRefusal, OAuthTokens, TokenEndpoint
from agent_gate.vault.vault import Vault

log = logging.getLogger("agent_gate.vault")
FIELD = "connection"
EARLY_SECONDS = 300.0
LEASE_SECONDS, WAIT_SECONDS = 15.0, 20.0
"""A request to the server takes ten seconds at most; who waits longer than the lease takes over from one that died."""
ENDED = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
AccountKind = Literal["key", "oauth", "machine", "exchange"]


class Connected(msgspec.Struct, frozen=True, kw_only=True):
    """One connected account, as it is sealed. `server` and `client` are there where tokens can be renewed."""

    kind: AccountKind
    tokens: OAuthTokens
    server: AuthorizationServer | None = None
    client: OAuthClient | None = None
    private_key: str | None = None
    proof_key: str | None = None
    """With which each request shows that it is the token's owner who sends it, where the server wants that."""
    resource: str | None = None
    scope: str | None = None
    account: str | None = None
    named: tuple[str, ...] = ()
    """The origins that the operator named, for the checks of a renewal."""
    by: str = ""
    since: float = 0.0
    renewed_at: float | None = None

    def __repr__(self) -> str:
        return f"Connected({self.kind}, {self.account})"

    @property
    def can_renew(self) -> bool:
        return self.kind == "machine" or self.tokens.refresh_token is not None

    @property
    def due_at(self) -> float | None:
        """When the token should be renewed; a short-lived one at four fifths of its time, not always."""
        ends = self.tokens.expires_at
        if ends is None:
            return None
        began = self.renewed_at or self.since
        return ends - min(EARLY_SECONDS, max(0.0, (ends - began) / 5))

    def is_due(self, now: float) -> bool:
        return self.due_at is not None and now >= self.due_at


class Accounts:
    """Every connected account. Memory holds a copy; the vault is the truth, for other processes too."""

    def __init__(self, vault: Vault, leases: Leases, web: Web, clock: Clock) -> None:
        self._vault, self._leases, self._web, self._clock = vault, leases, web, clock
        self.known: dict[str, tuple[Connected, int]] = {}
        """Each with its version in the vault; another object whenever it was read anew."""
        self._renewing: dict[str, asyncio.Task[Connected]] = {}
        self._refused: dict[str, Connected] = {}
        self._lost: Callable[[str, str], None] = lambda _owner, _why: None

    def subscribe(self, lost: Callable[[str, str], None]) -> None:
        """Hear once of each account that its server takes no more, with why."""
        self._lost = lost

    async def load(self) -> None:
        self.known = {
            owner: (msgspec.json.decode(kept.value, type=Connected), kept.version)
            for owner, kept in (await self._vault.read_all(FIELD)).items()
        }

    def at_hand(self, owner: str) -> Connected | None:
        """What is known now, without I/O, whether it is still good or not."""
        found = self.known.get(owner)
        return found[0] if found is not None else None

    def owners(self) -> list[str]:
        return sorted(self.known)

    async def keep(self, owner: str, connected: Connected) -> None:
        await self._vault.put(owner, FIELD, msgspec.json.encode(connected))
        await self.look_again(owner)

    def connected_at(self, owner: str) -> float:
        known = self.at_hand(owner)
        return known.since if known is not None else 0.0

    async def move(self, owner: str, to: str) -> None:
        """Let an account be another's, unless that one has an account."""
        connected = self.at_hand(owner)
        if connected is None or await self.look_again(to) is not None:
            return
        await self.keep(to, connected)
        await self._vault.remove(owner, FIELD)
        self.known.pop(owner, None)

    async def end(self, owner: str) -> Connected | None:
        """Forget an account, and take its tokens back where the server lets us. A server that is away changes nothing
        about the first."""
        connected = self.at_hand(owner)
        await self._vault.remove(owner, FIELD)
        self.known.pop(owner, None)
        if connected is not None and connected.kind == "oauth":
            try:
                await self._endpoint(connected).revoke(connected.tokens)
            except AuthorizationFault as fault:
                log.warning("The tokens of %s could not be revoked: %s", owner, fault.message)
        return connected

    async def renew_if_due(self, owner: str) -> Connected:
        """The account with a token that is good for a while; renewed where it is due."""
        connected = self.at_hand(owner) or await self.look_again(owner)
        if connected is None:
            raise SignInNeeded(f"Nobody is signed in for {owner}")
        if not connected.is_due(self._clock.now()) or not connected.can_renew:
            return connected
        return await self.renew(owner, connected.tokens.access_token)

    async def renew(self, owner: str, refused: str) -> Connected:
        """Another token than `refused`. Everybody who asks at the same time gets the same one."""
        task = self._renewing.get(owner)
        if task is None:
            task = self._renewing[owner] = asyncio.ensure_future(self._renew(owner, refused))
            task.add_done_callback(lambda _done: self._renewing.pop(owner, None))
        return await asyncio.shield(task)

    async def _renew(self, owner: str, refused: str) -> Connected:
        async with self._leases.held(f"renew:{owner}", LEASE_SECONDS, WAIT_SECONDS) as ours:
            connected = await self.look_again(owner)
            if connected is None:
                raise SignInNeeded(f"Nobody is signed in for {owner}")
            if connected.tokens.access_token != refused:
                return connected
            if not ours:
                raise DependencyUnavailable(f"The token of {owner} is being renewed elsewhere. Try again")
            return await self._ask_anew(owner, connected)

    async def _ask_anew(self, owner: str, connected: Connected) -> Connected:
        try:
            fresh = await self._fetch_tokens(connected)
        except OAuthRefusal as refusal:
            if refusal.error not in ENDED:
                raise
            return await self._find_ended(owner, connected, refusal)
        failpoint.reach("token_renewed")
        renewed = replace(connected, tokens=fresh, renewed_at=self._clock.now())
        version = self.known[owner][1]
        try:
            await self._vault.swap(owner, FIELD, msgspec.json.encode(renewed), version)
        except Conflict:
            log.info("The account %s was connected anew while its token was renewed", owner)
        return await self.look_again(owner) or renewed

    async def _fetch_tokens(self, connected: Connected) -> OAuthTokens:
        endpoint = self._endpoint(connected)
        if connected.kind == "machine":
            return await endpoint.exchange_credentials(connected.scope)
        return await endpoint.refresh(connected.tokens)

    async def _find_ended(self, owner: str, connected: Connected, refusal: OAuthRefusal) -> Connected:
        """The server took the account back, unless somebody else renewed it in the meantime."""
        now = await self.look_again(owner)
        if now is not None and now.tokens.access_token != connected.tokens.access_token:
            return now
        await self._vault.remove(owner, FIELD)
        self.known.pop(owner, None)
        self._lost(owner, refusal.message)
        raise SignInNeeded(f"The sign-in for {owner} has ended: {refusal.message}") from None

    def note_refused(self, owner: str, connected: Connected) -> None:
        """A token that cannot be renewed is not taken any more; said once of each."""
        if self._refused.get(owner) is not connected:
            self._refused[owner] = connected
            self._lost(owner, "its token is not taken any more, and cannot be renewed")

    async def look_again(self, owner: str) -> Connected | None:
        """What is kept now; another process may have changed it."""
        kept = await self._vault.get(owner, FIELD)
        if kept is None:
            self.known.pop(owner, None)
            return None
        connected = msgspec.json.decode(kept.value, type=Connected)
        self.known[owner] = (connected, kept.version)
        return connected

    def _endpoint(self, connected: Connected) -> TokenEndpoint:
        if connected.server is None or connected.client is None:
            raise AuthorizationFault("This account has no authorization server")
        return TokenEndpoint(
            self._web,
            connected.server,
            connected.client,
            Reach(frozenset(connected.named)),
            private_key=connected.private_key,
            resource=connected.resource,
            proof_key=connected.proof_key,
        )

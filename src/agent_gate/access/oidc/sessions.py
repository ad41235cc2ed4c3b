"""Sessions of people who logged in at a provider: opened, looked at again while they last, ended when it says so."""

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from agent_gate.access.keys import Key, Keys
from agent_gate.access.login import LINK_SECONDS, LoginLink
from agent_gate.access.oidc.people import VouchedPeople
from agent_gate.access.oidc.provider import Ended, OidcProvider, Vouched
from agent_gate.core.ports import Clock
from agent_gate.errors import GatewayError, Unauthorized
from agent_gate.store.leases import Leases
from agent_gate.vault.oauth.tokens import OAuthRefusal, OAuthTokens
from agent_gate.vault.vault import Vault

log = logging.getLogger("agent_gate.access")
LOOK_AGAIN = 300.0
TURN_SECONDS = 60.0
FIELD = "provider tokens"


class ProviderSessions:
    """`provider` is the one in use; None where there is none. Its tokens are kept in the vault, beside no session's
    other half. Where gateways share the store one of them looks again, since most providers take a token once."""

    def __init__(
        self,
        keys: Keys,
        vault: Vault,
        leases: Leases,
        clock: Clock,
        people: VouchedPeople,
        provider: Callable[[], OidcProvider | None],
    ) -> None:
        self._keys, self._vault, self._clock, self._people = keys, vault, clock, people
        self._leases, self.provider = leases, provider
        self._looked: dict[str, float] = {}

    def body(self, vouched: Vouched) -> dict[str, Any]:
        """What a session keeps of whom it is for."""
        return {"issuer": vouched.issuer, "subject": vouched.subject, "sid": vouched.session}

    async def keep_tokens(self, session: str, tokens: OAuthTokens) -> None:
        """So that the provider can be asked again, and told of a logout; where the vault is shut, it is not."""
        self._looked[session] = self._clock.monotonic()
        if self._vault.is_open:
            kept = msgspec.structs.replace(tokens, access_token="")
            await self._vault.put(owner(session), FIELD, msgspec.json.encode(kept))

    async def read_tokens(self, session: str) -> OAuthTokens | None:
        kept = await self._vault.get(owner(session), FIELD) if self._vault.is_open else None
        return msgspec.json.decode(kept.value, type=OAuthTokens) if kept is not None else None

    def link_like(self, session: Key) -> LoginLink:
        """A link to another session of somebody who is in by the provider's word: for no longer than this one, and the
        provider ends both."""
        left = max(0.0, float(session.body["expires_at"]) - self._clock.now())
        vouched = {name: str(session.body.get(name, "")) for name in ("issuer", "subject", "sid")}
        vouched["of"] = str(session.body.get("of") or session.name)
        return LoginLink(session.person, min(LINK_SECONDS, left), left, vouched)

    def _of_provider(self) -> list[Key]:
        return [key for key in self._keys.list("session") if key.body.get("issuer")]

    def is_of_provider(self, session: str) -> bool:
        return any(key.name == session for key in self._of_provider())

    async def take_tokens(self, session: str) -> OAuthTokens | None:
        """The tokens of a session that ends here."""
        tokens = await self.read_tokens(session)
        await self.forget(session)
        return tokens

    async def end(self, key: Key, why: str) -> None:
        await self._keys.revoke("session", key.name)
        await self.forget(key.name)
        log.info("A session has ended", extra={"person": key.person, "why": why})

    async def _end_with_links(self, key: Key, why: str) -> None:
        """End a session and those that links from it opened, of which the provider gave no tokens."""
        for one in self._of_provider():
            if one.name == key.name or one.body.get("of") == key.name:
                await self.end(one, why)

    async def forget(self, session: str) -> None:
        self._looked.pop(session, None)
        if self._vault.is_open:
            await self._vault.remove(owner(session), FIELD)

    async def forget_over(self) -> None:
        """Forget the tokens of sessions that are over, and of links that nobody followed in time."""
        for key in self._keys.list_over():
            if key.body.get("issuer") or key.body.get("vouched"):
                await self.forget(key.name)

    async def end_by_provider(self, ended: Ended) -> int:
        """What a logout at the provider ends here."""
        found = [
            key
            for key in self._of_provider()
            if ended.means(str(key.body.get("subject", "")), str(key.body.get("sid", "")))
        ]
        for key in found:
            await self.end(key, "the provider ended it")
        return len(found)

    async def look_again(self) -> None:
        """Ask the provider about those that were not asked about for a while; one that it refuses ends."""
        provider, now = self.provider(), self._clock.monotonic()
        for key in self._of_provider():
            if provider is None or key.body["issuer"] != provider.client.issuer:
                await self.end(key, "its provider is not the one in use")
            elif now - self._looked.get(key.name, -LOOK_AGAIN) >= LOOK_AGAIN:
                self._looked[key.name] = now
                async with self._leases.held(f"look:{key.name}", TURN_SECONDS, wait=0) as ours:
                    if ours and not await self._was_looked_at(key.name):
                        await self._look_at(key, provider)

    async def _was_looked_at(self, session: str) -> bool:
        """Whether another gateway did so just now: its tokens are newer than that."""
        kept = await self._vault.get(owner(session), FIELD) if self._vault.is_open else None
        return kept is not None and self._clock.now() - kept.updated_at < LOOK_AGAIN / 2

    async def _look_at(self, key: Key, provider: OidcProvider) -> None:
        tokens = await self.read_tokens(key.name)
        if tokens is None or tokens.refresh_token is None:
            return
        try:
            found, fresh = await provider.renew(tokens, str(key.body["subject"]))
            await self.keep_tokens(key.name, fresh)
            if found is not None and await self._people.keep(found) != key.person:
                await self._end_with_links(key, "the provider knows them by another name now")
        except (OAuthRefusal, Unauthorized) as error:
            await self._end_with_links(key, error.message)
        except GatewayError as error:
            if error.code == "FORBIDDEN":
                await self._end_with_links(key, error.message)
            else:
                log.warning("A provider could not be asked", extra={"why": error.message})


def owner(session: str) -> str:
    return f"login:{session}"

"""Tokens that count once: which of them were used is in the store, for every gateway on it, until they end anyway."""

from agent_gate.access.jwt.claims import text_at
from agent_gate.access.jwt.reading import BadToken, SignedClaims
from agent_gate.access.tokens import digest
from agent_gate.core.ports import Clock
from agent_gate.errors import RateLimited
from agent_gate.store.statement import Conflict, Statement, Store

LONGEST_SECONDS = 3600.0 + 60.0
"""How far ahead the end of such a token may be, with what clocks may differ: what is remembered is soon forgotten."""
MOST_REMEMBERED = 100_000
INSERT = "INSERT INTO used_tokens (digest, expires_at) VALUES (?, ?)"


class UsedOnce:
    """Remembers a token by its issuer and its `jti`."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def use(self, token: SignedClaims, until: float) -> None:
        """Use up a token that was checked and ends then; raises `BadToken` where it was used before, here or elsewhere."""
        name, now = text_at(token.claims, "jti"), self._clock.now()
        if not name:
            raise BadToken("The token has no jti, so that it could be used twice")
        if until > now + LONGEST_SECONDS:
            raise BadToken("The token lasts for more than an hour, too long for one that counts once")
        await self._check_room(now)
        known = digest(f"{text_at(token.claims, 'iss')}\0{name}").hex()
        try:
            await self._store.write(Statement(INSERT, (known, until)))
        except Conflict:
            raise BadToken("The token was used before") from None

    async def _check_room(self, now: float) -> None:
        [[count]] = await self._store.read("SELECT COUNT(*) FROM used_tokens WHERE expires_at > ?", (now,))
        if count >= MOST_REMEMBERED:
            raise RateLimited("Too many tokens that count once were used of late. Try again", retry_after=60)

    async def forget_ended(self) -> None:
        await self._store.write(
            Statement("DELETE FROM used_tokens WHERE expires_at <= ?", (self._clock.now(),))
        )

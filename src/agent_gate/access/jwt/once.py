"""Tokens that count once: which of them were used is in the store, for every gateway on it, until they end anyway."""

from agent_gate.access.jwt.claims import text_at
from agent_gate.access.jwt.reading import BadToken, SignedClaims
from agent_gate.access.tokens import digest
from agent_gate.core.ports import Clock
from agent_gate.store.statement import Conflict, Statement, Store

LONGEST_SECONDS = 3600.0 + 60.0
"""How far ahead the end of such a token may be, with what clocks may differ: what is remembered is soon forgotten."""
USED = "The token was used before"
INSERT = "INSERT INTO used_tokens (digest, expires_at) VALUES (?, ?)"


class UsedOnce:
    """Remembers a token by its issuer and its `jti`."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def use(self, token: SignedClaims, until: float) -> None:
        """Use up a token that was checked and ends then; raises `BadToken` where it was used before, here or elsewhere."""
        try:
            await self._store.write(self._using(token, until))
        except Conflict:
            raise BadToken(USED) from None

    async def check(self, token: SignedClaims, until: float) -> Statement:
        """What uses a token up together with what it is good for, where it was not used before. A stranger whose tokens
        are good for nothing leaves nothing behind."""
        using = self._using(token, until)
        if await self._store.read("SELECT 1 FROM used_tokens WHERE digest = ?", using.params[:1]):
            raise BadToken(USED)
        return using

    def _using(self, token: SignedClaims, until: float) -> Statement:
        name = text_at(token.claims, "jti")
        if not name:
            raise BadToken("The token has no jti, so that it could be used twice")
        if until > self._clock.now() + LONGEST_SECONDS:
            raise BadToken("The token lasts for more than an hour, too long for one that counts once")
        return Statement(INSERT, (digest(f"{text_at(token.claims, 'iss')}\0{name}").hex(), until))

    async def forget_ended(self) -> None:
        await self._store.write(
            Statement("DELETE FROM used_tokens WHERE expires_at <= ?", (self._clock.now(),))
        )

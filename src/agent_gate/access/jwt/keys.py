"""The keys that an issuer publishes: which of them count, for which algorithms, and where they are fetched."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agent_gate.access.jwt.reading import LONGEST_NAME, BadToken, SignedClaims, read_bytes
from agent_gate.core.ports import Clock
from agent_gate.errors import DependencyUnavailable
from agent_gate.vault.oauth.discovery import find_server
from agent_gate.vault.oauth.reach import AuthorizationFault, Reach, Web

log = logging.getLogger("agent_gate.access")
MOST_KEYS = 64
SMALLEST_RSA = 2048
AGAIN = 30.0
"""Seconds between two fetches that unknown keys ask for."""
FRESH = 900.0
STALE = 24 * 3600.0
"""Seconds after which keys are fetched again; and after which they do not count, where that fails."""
RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
CURVES = {
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA", "Ed25519"),
}


class KeysPending(DependencyUnavailable):
    """The keys that a token needs are being fetched."""


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """One public key. `algorithms` are all that it may be used with, whatever a token says."""

    id: str | None
    algorithms: tuple[str, ...]
    key: Any
    thumbprint: str

    def verifies(self, token: SignedClaims) -> bool:
        from joserfc.errors import JoseError
        from joserfc.jws import JWSRegistry

        if token.algorithm not in self.algorithms:
            return False
        try:
            return bool(
                JWSRegistry.algorithms[token.algorithm].verify(token.signed, token.signature, self.key)
            )
        except (JoseError, ValueError):
            return False


def algorithms_of(jwk: dict[str, Any]) -> tuple[str, ...]:
    """What a published key may be used with: told by its type, narrowed by what its issuer says of it."""
    by_type = RSA if jwk.get("kty") == "RSA" else CURVES.get((str(jwk.get("kty")), str(jwk.get("crv"))), ())
    said = jwk.get("alg")
    return by_type if said is None else tuple(name for name in by_type if name == said)


def read_key(jwk: object) -> VerifyingKey | None:
    """A key that signatures can be checked with; None for secrets, keys for other uses, and weak ones."""
    from joserfc.errors import JoseError
    from joserfc.jwk import JWKRegistry

    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig" or not algorithms_of(jwk):
        return None
    kid = jwk.get("kid")
    if kid is not None and not (isinstance(kid, str) and len(kid) <= LONGEST_NAME):
        return None
    public = {name: jwk[name] for name in ("kty", "crv", "x", "y", "n", "e") if name in jwk}
    try:
        if jwk["kty"] == "RSA" and len(read_bytes(jwk["n"])) * 8 < SMALLEST_RSA:
            return None
        key = JWKRegistry.import_key(public)
        return VerifyingKey(kid, algorithms_of(jwk), key, key.thumbprint())
    except (JoseError, BadToken, ValueError, TypeError, KeyError):
        return None


def read_keys(document: object) -> tuple[VerifyingKey, ...]:
    """The usable keys of a JWK set; one that is not understood does not spoil the others."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise AuthorizationFault("The issuer's keys are not a JWK set")
    found = (read_key(one) for one in listed[:MOST_KEYS])
    return tuple(key for key in found if key is not None)


def fitting(keys: Iterable[VerifyingKey], token: SignedClaims) -> list[VerifyingKey]:
    """The keys that may have signed the token: the one it names, or without a name all of its algorithm."""
    wanted = token.key_id
    named = [key for key in keys if wanted is None or key.id == wanted]
    return [key for key in named if token.algorithm in key.algorithms]


class IssuerKeys:
    """Fetches the keys of one issuer, one request at a time, and keeps them while they count."""

    def __init__(
        self, web: Web, clock: Clock, issuer: str, url: str = "", reach: Reach | None = None
    ) -> None:
        """Without a `url` the issuer says itself where its keys are. `reach` is what the operator named; without one,
        that address."""
        self._web, self._clock, self._issuer, self._url = web, clock, issuer, url
        self._reach = Reach.of(url or issuer) if reach is None else reach
        self.keys: tuple[VerifyingKey, ...] = ()
        self._fetched_at = self._tried_at = -STALE
        self._fetching: asyncio.Task[None] | None = None

    @property
    def fault(self) -> str:
        """Why nothing can be checked; empty where it is known which keys count."""
        return "" if self._is_known() else f"the keys of {self._issuer} could not be fetched"

    def _is_known(self) -> bool:
        return self._clock.monotonic() - self._fetched_at < STALE

    def _counting(self) -> tuple[VerifyingKey, ...]:
        return self.keys if self._is_known() else ()

    def lack(self, token: SignedClaims) -> bool:
        """Whether fetching them could bring a key that may have signed this token; not asked for too often."""
        if self._fetching is not None:
            return not fitting(self._counting(), token)
        now = self._clock.monotonic()
        return now - self._tried_at >= AGAIN and not fitting(self._counting(), token)

    def is_due(self) -> bool:
        """Whether it is time to see which keys are still published."""
        now = self._clock.monotonic()
        return now - self._fetched_at >= FRESH and now - self._tried_at >= AGAIN

    async def fetch(self) -> None:
        """Ask the issuer; who comes meanwhile waits for the same answer. A failure leaves what was known."""
        if self._fetching is None:
            self._tried_at = self._clock.monotonic()
            self._fetching = asyncio.ensure_future(self._fetch())
            self._fetching.add_done_callback(self._fetched)
        await asyncio.shield(self._fetching)

    def _fetched(self, _done: "asyncio.Task[None]") -> None:
        self._fetching = None

    async def _fetch(self) -> None:
        try:
            found = read_keys((await self._answer()).json("issuer's keys"))
        except DependencyUnavailable as error:
            log.warning(
                "The keys of an issuer were not fetched",
                extra={"issuer": self._issuer, "why": error.message},
            )
            return
        self.take(found)

    def take(self, keys: tuple[VerifyingKey, ...]) -> None:
        """From now on these count."""
        self.keys, self._fetched_at = keys, self._clock.monotonic()

    async def _answer(self) -> Any:
        url = self._url
        if not url:
            server = await find_server(self._web, self._issuer, self._reach)
            if server is None or server.jwks_url is None:
                raise AuthorizationFault(f"{self._issuer} does not say where its keys are; give jwks_url")
            url = server.jwks_url
        answer = await self._web.get(url, self._reach, "issuer's keys")
        if answer.status != 200:
            raise AuthorizationFault(f"The issuer's keys were answered with status {answer.status}")
        return answer

    def check(self, token: SignedClaims) -> VerifyingKey:
        """The key that signed the token; `KeysPending` where it may be one that is not known yet."""
        for key in fitting(self._counting(), token):
            if key.verifies(token):
                return key
        if self.lack(token):
            raise KeysPending(f"The keys of {self._issuer} are being fetched. Try again", retry_after=1.0)
        if fault := self.fault:
            raise DependencyUnavailable(f"Nobody can come in with this token now: {fault}", retry_after=AGAIN)
        raise BadToken("No key of its issuer signed this token")

"""What one source is let in with, asked anew for each request; whatever it gets is known as a secret at once."""

from collections.abc import Callable, Iterable

from agent_gate.core.credentials import Credentials, Identity, Proof
from agent_gate.net.auth import prove
from agent_gate.observe.redact import Mask, Redactor

Learn = Callable[[Iterable[str]], None]


class FixedCredentials:
    """What stands in the file, for everybody and for as long as the file says it."""

    def __init__(self, who: Identity) -> None:
        self._proof = prove(who)

    def at_hand(self, _caller: str, /) -> Proof | None:
        return self._proof

    async def fetch(self, _caller: str, /) -> Proof:
        return self._proof

    async def refused(self, _caller: str, _proof: Proof, _challenge: str, /) -> Proof | None:
        return None


class Access:
    """A source's credentials, the mask that takes them out of its results, and the redactor for its errors."""

    def __init__(self, credentials: Credentials, learn: Learn, *, masks: bool = True) -> None:
        self._credentials, self._learn, self._masks = credentials, learn, masks
        self._last: dict[str, Proof] = {}
        self._mask: Mask | None = None
        self.redactor = Redactor()
        self.at_hand("")

    def at_hand(self, caller: str) -> Proof | None:
        """What counts now; None where `fetch` has to be awaited."""
        proof = self._credentials.at_hand(caller)
        return proof if proof is None or self._last.get(caller) is proof else self._note(caller, proof)

    async def fetch(self, caller: str) -> Proof:
        return self._note(caller, await self._credentials.fetch(caller))

    async def refused(self, caller: str, proof: Proof, challenge: str) -> Proof | None:
        """Another proof after a 401, to be tried once."""
        fresh = await self._credentials.refused(caller, proof, challenge)
        return None if fresh is None else self._note(caller, fresh)

    def masked(self, body: bytes) -> bytes:
        """A result without the credentials that its source was given."""
        return body if self._mask is None else self._mask.body(body)

    def _note(self, caller: str, proof: Proof) -> Proof:
        self._last[caller] = proof
        self._learn(proof.secrets)
        self.redactor.add(proof.secrets)
        if self._masks and proof.secrets:
            self._mask = self._mask or Mask()
            self._mask.learn(proof.secrets)
        return proof

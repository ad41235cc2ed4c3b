"""The passphrase that an answer may need beside its channel; guessing it gets slow."""

import hmac
from collections.abc import Callable

from agent_gate.core.ports import Clock
from agent_gate.net.guard import Backoff

GUESSES = 5


class Passphrases:
    """`wanted` gives a person's passphrase, or None where none is asked for."""

    def __init__(self, clock: Clock, wanted: Callable[[str], str | None]) -> None:
        self._clock, self._wanted = clock, wanted
        self._guesses = Backoff(limit=GUESSES)

    def check(self, person: str, given: object) -> bool:
        """Whether the answer may count with what was `given`, where it is a text; raises `RateLimited` after too many wrong
        ones."""
        wanted = self._wanted(person)
        if wanted is None:
            return True
        if not isinstance(given, str):
            return False
        now = self._clock.monotonic()
        self._guesses.refuse(person, now, "wrong passphrases")
        if hmac.compare_digest(wanted.encode(), given.encode("utf-8", "surrogatepass")):
            self._guesses.succeeded(person)
            return True
        self._guesses.failed(person, now)
        return False

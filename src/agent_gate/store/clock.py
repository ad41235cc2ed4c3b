"""The time of gateways that share a store: the database's, carried on from one look to the next by the monotonic clock.

So a clock that is set, or wrong, on the machine of one gateway ends no question and revives none, and the rows of all
chains have one time.
"""

import logging
import time
from collections.abc import Callable

from agent_gate.store.statement import Store

log = logging.getLogger("agent_gate.store")
FAR = 0.5
"""How many seconds the two may differ before the database's counts anew; smaller ones are those of the look itself."""
SLOW = 1.0
WRONG = 5.0


class GatewayClock:
    """This machine's clock, until it follows a store."""

    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self.now: Callable[[], float] = time.time
        self._ahead = 0.0
        """By how much the database's clock is ahead of the monotonic one."""
        self._is_wrong = False

    async def follow(self, store: Store) -> None:
        """Take over the time of a store that is shared; again and again, since both go on by themselves."""
        if not store.shared:
            return
        asked = self.monotonic()
        [(told,)] = await store.read(f"SELECT {store.now}")
        took = self.monotonic() - asked
        ahead = float(told) - asked - took / 2
        first = self.now is time.time
        if first or (took < SLOW and abs(ahead - self._ahead) > FAR):
            self._ahead, self.now = ahead, self._read
        self._compare()

    def _read(self) -> float:
        return time.monotonic() + self._ahead

    def _compare(self) -> None:
        """Say it once where this machine's own clock is wrong."""
        off = time.time() - self._read()
        wrong = abs(off) > WRONG
        if wrong and not self._is_wrong:
            log.warning("This machine's clock is %+.0f s off the database's, by which the gateways go", off)
        self._is_wrong = wrong

"""Who waits for which call, in this process: outcomes are told to everybody who waits, once."""

import asyncio
from collections import defaultdict

from agent_gate.core.call import Outcome


class Waiting:
    """Futures by call id. The record is the truth; this only wakes those who are here."""

    def __init__(self) -> None:
        self._futures: defaultdict[str, set[asyncio.Future[Outcome]]] = defaultdict(set)

    async def outcome(self, call_id: str, seconds: float | None) -> Outcome | None:
        """The outcome once it is told, or None when `seconds` pass first."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._futures[call_id].add(future)
        try:
            told, _ = await asyncio.wait([future], timeout=seconds)
            return future.result() if told else None
        finally:
            self._drop(call_id, future)

    def tell(self, outcome: Outcome) -> int:
        """Wake all who wait for this call; how many there were."""
        if not self._futures:
            return 0
        waiting = self._futures.pop(outcome.call_id, ())
        for future in waiting:
            if not future.done():
                future.set_result(outcome)
        return len(waiting)

    def _drop(self, call_id: str, future: asyncio.Future[Outcome]) -> None:
        futures = self._futures.get(call_id)
        if futures is not None:
            futures.discard(future)
            if not futures:
                del self._futures[call_id]

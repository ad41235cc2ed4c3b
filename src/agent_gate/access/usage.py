"""Limits that hold for all gateways on a store together, nearly: each says now and then how much its callers did."""

from agent_gate.access.quota import Quota
from agent_gate.store.statement import Statement, Store

LASTS = 60.0
MOST_TOLD = 500
"""Of so many callers, those who did most; whoever did less is not near a limit."""


class SharedUsage:
    """Tells the others what was counted here, and the counters what was counted elsewhere."""

    def __init__(self, store: Store, counters: dict[str, Quota]) -> None:
        self._store, self._counters = store, counters
        self._told: dict[tuple[str, str], int] = {}

    async def exchange(self) -> None:
        """Where nothing was counted since, nothing is written."""
        counted = {
            (name, caller): used
            for name, counter in self._counters.items()
            for caller, used in counter.most_used(MOST_TOLD)
        }
        gone = {place: 0 for place in self._told if place not in counted}
        changes = {
            place: used for place, used in (counted | gone).items() if self._told.get(place, 0) != used
        }
        if changes:
            await self._store.write(*(self._telling(*place, used) for place, used in changes.items()))
        self._told = counted
        await self._hear()

    def _telling(self, counter: str, caller: str, used: int) -> Statement:
        ends = f"{self._store.now} + {LASTS}"
        sql = (
            f"INSERT INTO usage (gateway, caller, counter, used, ends_at) VALUES (?, ?, ?, ?, {ends}) "
            "ON CONFLICT (gateway, caller, counter) DO UPDATE SET used = excluded.used, ends_at = excluded.ends_at"
        )
        return Statement(sql, (self._store.chain, caller, counter, used))

    async def _hear(self) -> None:
        rows = await self._store.read(
            "SELECT counter, caller, sum(used) FROM usage "
            f"WHERE gateway <> ? AND used > 0 AND ends_at > {self._store.now} GROUP BY counter, caller",
            (self._store.chain,),
        )
        for name, counter in self._counters.items():
            counter.hear_others({caller: int(used) for found, caller, used in rows if found == name})

    async def purge(self) -> None:
        await self._store.write(Statement(f"DELETE FROM usage WHERE ends_at <= {self._store.now}"))

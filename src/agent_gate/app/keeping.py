"""How long the record is kept: what is older is cut away, by the settings or by an operator."""

from collections.abc import Callable

from agent_gate.app.kept import KeptState
from agent_gate.approval.forgetting import forget_questions
from agent_gate.audit import Cutter, list_chains
from agent_gate.core.ports import Clock
from agent_gate.errors import InvalidArgs
from agent_gate.store.gateways import FORGET_SECONDS
from agent_gate.store.leases import Leases

DAY = 86_400.0
TURN_SECONDS = 3600.0
BY_SETTINGS = "audit.retention"


class RecordKeeping:
    """Cuts the record and forgets the questions that went with it."""

    def __init__(self, kept: KeptState, clock: Clock, days: Callable[[], float | None]) -> None:
        self._store, self._clock, self._days = kept.store, clock, days
        self._seal = kept.sealer.seal
        self._cutter = Cutter(kept.store, kept.audit_key, clock, kept.heads, kept.cut_key)
        self._gateways, self._vault, self._leases = kept.gateways, kept.vault, Leases(kept.store, clock)

    async def cut(self, days: float, made_by: str) -> int:
        """Take away what is older than so many days; how many rows went."""
        if not 0 <= days < 1e6:
            raise InvalidArgs("Say how many days are kept, as a number such as 90")
        # What is not sealed is never cut.
        await self._seal()
        before = self._clock.now() - days * DAY
        gone = await self._cutter.cut(before, made_by) + await self._cut_gone(before, made_by)
        await forget_questions(self._store, before)
        return gone

    async def _cut_gone(self, before: float, made_by: str) -> int:
        """The same in the chains of gateways that nobody has heard for long; one gateway does so at a time."""
        if not self._store.shared or not self._vault.is_open:
            return 0
        async with self._leases.held("retention", TURN_SECONDS, wait=0) as ours:
            chains = await self._list_gone() if ours else []
            return sum([await self._cutter.cut_gone(chain, before, made_by) for chain in chains])

    async def _list_gone(self) -> list[str]:
        known = await self._gateways.list_all()
        there = {one.id for one in known if one.alive or one.silent < FORGET_SECONDS} | {self._store.chain}
        return [chain for chain in await list_chains(self._store) if chain not in there]

    async def keep(self) -> None:
        """What the settings say, if they say anything."""
        days = self._days()
        if days is not None:
            await self.cut(days, BY_SETTINGS)

"""After a crash: pending is pending again, approved is performed while its time lasts, dispatching becomes unknown.

What was dispatching is never run again, unless the tool is idempotent and its key was passed on.
"""

import logging
from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby
from typing import Any

from agent_gate.approval.inbox import Inbox
from agent_gate.audit import Row, read_unfinished
from agent_gate.calls import entries
from agent_gate.calls.approved import LATE
from agent_gate.calls.calls import Calls
from agent_gate.calls.perform import MAY_HAVE_RUN
from agent_gate.core.approval import Approval
from agent_gate.core.call import Call, Caller, Outcome, State
from agent_gate.core.ports import Clock
from agent_gate.errors import ApprovalTimeout, OutcomeUnknown
from agent_gate.results.kept import keep
from agent_gate.store.gateways import Gateways
from agent_gate.store.statement import Conflict, Statement, Store

log = logging.getLogger("agent_gate.recovery")
LOST = OutcomeUnknown(f"The gateway stopped while this call ran. {MAY_HAVE_RUN}")


def stories(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each unfinished call, in order."""
    return [list(group) for _, group in groupby(rows, key=lambda row: row.call)]


async def recover(calls: Calls, store: Store, inbox: Inbox, clock: Clock) -> dict[str, int]:
    """Take up every call that was under way when the process ended; how many of each kind there were."""
    counts = {"pending": len(await inbox.load()), "approved": 0, "late": 0, "unknown": 0}
    for story in stories(await read_unfinished(store, store.chain)):
        last = State(story[-1].state)
        if last is State.APPROVED:
            approval = await inbox.get(story[-1].call)
            if approval is None or approval.gateway not in ("", store.chain):
                continue
            if approval.asked.expires_at <= clock.now():
                await calls.void(approval, ApprovalTimeout(LATE))
                counts["late"] += 1
            else:
                calls.start(approval)
                counts["approved"] += 1
        elif last is State.DISPATCHING:
            store.post(*lose(story, LOST, clock.now()))
            counts["unknown"] += 1
    # Last, because it starts calls: what this run dispatches must not be taken for what the last one left.
    await calls.finish_agreed()
    if any(counts.values()):
        log.info("Took up where the last run ended", extra=counts)
    return counts


class TakingOver:
    """What a gateway does for others that are gone: it runs what was approved and not begun, and says of what was begun
    that nobody knows how it ended. Each is a compare-and-set, so that however many see it one does it."""

    def __init__(self, calls: Calls, store: Store, inbox: Inbox, clock: Clock, gateways: Gateways) -> None:
        self._calls, self._store, self._inbox = calls, store, inbox
        self._clock, self._gateways = clock, gateways
        self._agreed: set[str] = set()

    async def finish_agreed(self) -> None:
        """End the questions that were agreed at the last look already, and that nobody ended since."""
        self._agreed = await self._calls.finish_agreed(self._agreed)

    async def look(self) -> None:
        """Find what nobody does any more, and what is ours to do and was not heard of."""
        if not self._store.shared:
            return
        await self._gateways.look()
        for gateway, head in await self._gateways.list_unsettled():
            if gateway != self._gateways.id:
                await self._settle(gateway, head)
        for approval in await self._inbox.list_owed():
            await self._perform(approval)

    async def _settle(self, gateway: str, head: int) -> None:
        lost = []
        for story in stories(await read_unfinished(self._store, gateway)):
            if story[-1].state == State.DISPATCHING:
                with suppress(Conflict):
                    await self._store.write(*lose(story, LOST, self._clock.now()))
                    lost.append(story[-1].call)
        await self._gateways.settle(gateway, head)
        await self._calls.hear_results(lost)
        log.info("Another gateway is gone", extra={"gateway": gateway, "unknown": len(lost)})

    async def _perform(self, approval: Approval) -> None:
        if approval.gateway != self._gateways.id:
            if self._gateways.is_alive(approval.gateway):
                return
            taken = await self._inbox.take_over(approval)
            if taken is None:
                return
            log.info(
                "Took over what was approved", extra={"call": approval.call_id, "from": approval.gateway}
            )
            approval = taken
        self._calls.start(approval)


def lose(story: list[Row], error: OutcomeUnknown, now: float) -> tuple[Statement, Statement]:
    """Writes down that nobody knows what became of this call, and keeps that for its caller."""
    first: dict[str, Any] = story[0].decoded()["body"]
    row = story[-1]
    call = Call(
        tool=row.tool,
        arguments={},
        caller=Caller(name=row.caller),
        id=row.call,
        session=first.get("session"),
        client_id=first.get("client_id"),
    )
    outcome = Outcome(call_id=row.call, state=State.UNKNOWN, error=error)
    arguments = entries.text(first.get("arguments", {}))
    kept = keep(call, first.get("wire", row.tool), first.get("signature", ""), arguments, outcome, now)
    return entries.lost(row.call, row.caller, row.tool, now, error), kept

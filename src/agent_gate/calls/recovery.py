"""After a crash: pending is pending again, approved is performed while its time lasts, dispatching becomes unknown.

What was dispatching is never run again, unless the tool is idempotent and its key was passed on.
"""

import logging
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from agent_gate.approval.inbox import Inbox
from agent_gate.audit import Row, unfinished
from agent_gate.calls import entries
from agent_gate.calls.approved import LATE
from agent_gate.calls.calls import Calls
from agent_gate.calls.perform import MAY_HAVE_RUN
from agent_gate.core.call import Call, Caller, Outcome, State
from agent_gate.core.ports import Clock
from agent_gate.errors import ApprovalTimeout, OutcomeUnknown
from agent_gate.results.kept import keep
from agent_gate.store.statement import Statement, Store

log = logging.getLogger("agent_gate.recovery")
LOST = OutcomeUnknown(f"The gateway stopped while this call ran. {MAY_HAVE_RUN}")


def stories(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each unfinished call, in order."""
    return [list(group) for _, group in groupby(rows, key=lambda row: row.call)]


async def recover(calls: Calls, store: Store, inbox: Inbox, clock: Clock) -> dict[str, int]:
    """Take up every call that was under way when the process ended; how many of each kind there were."""
    counts = {"pending": len(await inbox.load()), "approved": 0, "late": 0, "unknown": 0}
    for story in stories(await unfinished(store, store.chain)):
        last = State(story[-1].state)
        if last is State.APPROVED:
            approval = await inbox.get(story[-1].call)
            if approval is None:
                continue
            if approval.expires_at <= clock.now():
                await calls.void(approval, ApprovalTimeout(LATE))
                counts["late"] += 1
            else:
                calls.start(approval)
                counts["approved"] += 1
        elif last is State.DISPATCHING:
            store.post(*lose(story, LOST, clock.now()))
            counts["unknown"] += 1
    if any(counts.values()):
        log.info("Took up where the last run ended", extra=counts)
    return counts


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

"""Calls that a person approved: each runs once, or the record says why it did not."""

import asyncio
import logging
from collections.abc import Callable

from agent_gate.approval.rows import letting_go
from agent_gate.calls import entries
from agent_gate.calls.asking import Asking, keep_answered
from agent_gate.calls.perform import Performing, Waiting, taken_back
from agent_gate.core.approval import Approval
from agent_gate.core.call import Case, Outcome, State, hash_arguments
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock
from agent_gate.core.tasks import ends_within
from agent_gate.errors import (
    ApprovalTimeout,
    DependencyUnavailable,
    Forbidden,
    GatewayError,
    OutcomeUnknown,
)
from agent_gate.store.statement import Conflict, Store

log = logging.getLogger("agent_gate.calls")
MAY_RUN = "The call was approved and did not run, but it may when the gateway is started again"
LATE = "The call was approved, but its time was over before the gateway could run it. Nothing was sent"
CHANGED = "The tool is not the one that was approved: its definition changed. Ask again"
AWAY = "The tool's source did not come back in time"


class Wait:
    """An approved call until it ends: whose it is, and whether the caller took it back before it ran."""

    __slots__ = ("caller", "changed", "taken_back")

    def __init__(self, caller: str) -> None:
        self.caller, self.taken_back = caller, False
        self.changed = asyncio.Event()


class ApprovedCalls:
    """Performs what was approved in time, with the same arguments, by the same definition, if no rule came between."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        shelf: Shelf,
        asking: Asking,
        performing: Performing,
        waiting: Waiting,
        why_denied: Callable[[Case], Forbidden | None],
    ) -> None:
        self._store, self._clock, self._shelf = store, clock, shelf
        self._asking, self._performing, self._waiting = asking, performing, waiting
        self._why_denied = why_denied
        self._waits: dict[str, Wait] = {}

    def why_denied(self, approval: Approval) -> Forbidden | None:
        """What the rules of now say against the call of a question, whatever a person answers."""
        case = self._asking.case(approval)
        return None if case is None else self._why_denied(case)

    def holds(self, call_id: str, caller: str) -> bool:
        """Whether this caller's call was approved and has not ended."""
        wait = self._waits.get(call_id)
        return wait is not None and wait.caller == caller

    def take_back(self, call_id: str, caller: str) -> bool:
        """Keep an approved call from running, where it does not run yet."""
        if not self.holds(call_id, caller) or call_id in self._performing.running:
            return False
        wait = self._waits[call_id]
        wait.taken_back = True
        wait.changed.set()
        return True

    def note(self, approval: Approval) -> bool:
        """From now on the call is under way; false where it is already."""
        if approval.call_id in self._waits:
            return False
        self._waits[approval.call_id] = Wait(approval.caller.name)
        return True

    def why_waiting(self, approval: Approval) -> Outcome | None:
        """How a call stands that was approved and waits for its source; None where it does not."""
        call, case = approval.call_id, self._asking.case(approval)
        there = case is not None and case.tool.available
        if there or call not in self._waits or call in self._performing.running:
            return None
        away = DependencyUnavailable(f"{approval.namespace} cannot be called now")
        return Outcome(call_id=call, state=State.APPROVED, error=away)

    async def perform(self, approval: Approval) -> None:
        """Run what was approved and noted, or nothing; a source that is away is waited for."""
        wait = self._waits[approval.call_id]
        try:
            if approval.asked.expires_at <= self._clock.now():
                return await self.void(approval, ApprovalTimeout(LATE))
            case = await self._wait_for_source(approval, wait)
            why_not = taken_back() if wait.taken_back else self._why_not(approval, case)
            if case is None or why_not is not None:
                await self.void(approval, why_not or DependencyUnavailable(AWAY))
            else:
                await self._performing.perform(case, approval.asked.at, asked=True)
        except DependencyUnavailable as error:
            await self.void(approval, error)
        except Conflict:
            log.info("Another gateway runs what was approved", extra={"call": approval.call_id})
        finally:
            del self._waits[approval.call_id]
            self._asking.performed(approval)

    def _why_not(self, approval: Approval, case: Case | None) -> GatewayError | None:
        """Why what was approved may not run now."""
        if case is None:
            return DependencyUnavailable(AWAY)
        same = hash_arguments(case.call.arguments, case.facts) == approval.hashes.arguments
        if not same or case.tool.pin != approval.hashes.definition:
            return Forbidden(CHANGED)
        return self._why_denied(case)

    async def _wait_for_source(self, approval: Approval, wait: Wait) -> Case | None:
        """The case once its source is there, or as it is when the approval's time is over or its caller is not
        interested any more."""
        changed = wait.changed
        undo = self._shelf.subscribe(lambda _before, _now: changed.set())
        try:
            while True:
                case = self._asking.case(approval)
                left = approval.asked.expires_at - self._clock.now()
                if (case is not None and case.tool.available) or left <= 0 or wait.taken_back:
                    return case
                changed.clear()
                if not await ends_within(left, changed.wait()):
                    return self._asking.case(approval)
        finally:
            undo()

    async def void(self, approval: Approval, error: GatewayError) -> None:
        """An approval that cannot be honoured any more: recorded as failed, nothing was sent.

        Until that is durable the next start would run the call, and who waits for it must not hear otherwise.
        """
        outcome = Outcome(call_id=approval.call_id, state=State.FAILED, error=error)
        try:
            await self._give_up(approval, error, outcome)
        except Conflict:
            return  # another gateway took the call over, and tells how it ends
        except DependencyUnavailable as unwritten:
            why = OutcomeUnknown(f"{MAY_RUN}. {unwritten.message}")
            outcome = Outcome(call_id=approval.call_id, state=State.UNKNOWN, error=why)
        self._waiting.tell(outcome)

    async def _give_up(self, approval: Approval, error: GatewayError, outcome: Outcome) -> None:
        now = self._clock.now()
        rows = entries.voided(approval, error, now), keep_answered(approval, outcome, now)
        if self._store.shared:
            await self._store.write(letting_go(approval.call_id, self._store.chain), *rows)
        else:
            self._store.post(*rows)
            await self._store.flush()

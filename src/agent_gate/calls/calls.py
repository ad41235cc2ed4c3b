"""`Calls`: the one way in for every surface, and the place where calls go on without their sender."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from agent_gate.approval.inbox import Inbox
from agent_gate.calls import admit, entries, perform
from agent_gate.calls.asking import Asking, keep_answered, refusal
from agent_gate.calls.refusals import Refusals
from agent_gate.calls.waiting import Waiting
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import Call, Caller, Case, Outcome, Pending, State, hash_arguments
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock, Conversation
from agent_gate.errors import (
    ApprovalTimeout,
    DependencyUnavailable,
    Forbidden,
    GatewayError,
    Internal,
    InvalidArgs,
    OutcomeUnknown,
    ViewFailed,
)
from agent_gate.observe import failpoint
from agent_gate.observe.trace import root, well_formed
from agent_gate.results.kept import KeptResults, Page
from agent_gate.store.statement import Conflict, Store

log = logging.getLogger("agent_gate.calls")
MAY_RUN = "The call was approved and did not run, but it may when the gateway is started again"
NOT_HERE = "The call was approved, but it is another gateway that runs it. Ask for its result later"
LATE = "The call was approved, but its time was over before the gateway could run it. Nothing was sent"
CHANGED = "The tool is not the one that was approved: its definition changed. Ask again"


class Approved:
    """A call that a person approved, until it ends: whose it is, and whether the caller took it back before it ran."""

    __slots__ = ("caller", "changed", "taken_back")

    def __init__(self, caller: str) -> None:
        self.caller, self.taken_back = caller, False
        self.changed = asyncio.Event()


class Calls:
    """Admits, asks, performs. Everything that must survive is in the store; this holds only what is live."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        shelf: Shelf,
        inbox: Inbox,
        refusals: Refusals,
        admit_stages: Sequence[admit.Stage],
        perform_stages: Sequence[perform.Stage],
        asking: Callable[["Calls"], Asking],
        still_allowed: Callable[[Case], bool] = lambda _case: True,
    ) -> None:
        self._store, self._clock, self.shelf, self.inbox = store, clock, shelf, inbox
        self._refusals = refusals
        self._admit, self._perform = admit_stages, perform_stages
        self._still_allowed = still_allowed
        self._kept = KeptResults(store)
        self._waiting = Waiting()
        self._running: dict[str, perform.Performance] = {}
        self._approved: dict[str, Approved] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._drained = False
        self.asking = asking(self)
        self.traced = False

    async def run(self, call: Call, *, wait: float | None = None) -> Outcome | Pending:
        """Take a call from its surface to its outcome.

        A call that must wait for a person is held for `wait` seconds (None: until it ends), then `Pending`.
        """
        if failpoint.armed:
            failpoint.reach("after_receive")
        received = self._clock.now()
        if self.traced or call.trace is not None:
            call = self._with_trace(call)
        draft = admit.Draft(call)
        try:
            case = admit.admit(self._admit, draft)
            if failpoint.armed:
                failpoint.reach("after_decide")
            if case.decision.effect == "allow":
                if call.idempotency_key is not None and (first := await self._first(case, wait)) is not None:
                    return first
                return await self._performed(case, received, asked=False)
            approval = await self.asking.ask(case, received)
        except GatewayError as error:
            return self._refusals.refuse(draft, error)
        except Conflict:
            return await self._repeated(draft, case, wait)
        if case.decision.via == "client" and call.conversation is not None and call.conversation.can_be_asked:
            return await self._asked_client(approval, call.conversation, wait)
        return await self.outcome(approval.call_id, call.caller, wait=wait)

    def refuse(self, call: Call, error: GatewayError) -> Outcome:
        """Put a call on record that its surface turned away; the quota, the first stage, holds for it too."""
        draft = admit.Draft(call)
        try:
            self._admit[0](draft)
        except GatewayError as refused:
            error = refused
        return self._refusals.refuse(draft, error)

    def _with_trace(self, call: Call) -> Call:
        """The call with a trace it can be found by: the caller's where it is one, else its own."""
        if call.trace is not None and well_formed(call.trace):
            return call
        return replace(call, trace=root(call.id) if self.traced else None)

    async def _asked_client(
        self, approval: Approval, conversation: Conversation, wait: float | None
    ) -> Outcome | Pending:
        """A rule lets the caller's own client answer: ask it now, or hand the question over where it has to come back."""
        if conversation.comes_back:
            return Pending(
                call_id=approval.call_id,
                approval_id=approval.id,
                expires_at=approval.expires_at,
                signature=approval.signature,
                question=approval,
            )
        self.spawn(self._ask_client(approval, conversation))
        return await self.outcome(approval.call_id, approval.caller, wait=wait)

    async def _ask_client(self, approval: Approval, conversation: Conversation) -> None:
        answer = await conversation.ask(approval)
        if answer is not None:
            await self._client_said(approval.id, answer)

    async def _client_said(self, approval_id: str, answer: Answer) -> None:
        try:
            await self.answer(approval_id, answer)
        except GatewayError as error:
            log.info(
                "The client's answer does not count", extra={"approval": approval_id, "why": error.message}
            )

    async def client_answered(self, call_id: str, caller: Caller, answer: Answer) -> None:
        """What a client came back with; it counts only for its own call, and only where a rule says so."""
        for approval in self.inbox.open():
            mine = approval.call_id == call_id and approval.caller.name == caller.name
            if mine and approval.decision.via == "client":
                await self._client_said(approval.id, answer)

    def _performed(self, case: Case, received: float, *, asked: bool) -> Awaitable[Outcome]:
        performance = perform.Performance(case, asked, {"received": received})
        return perform.perform(self._perform, performance, self._running, self._waiting.tell)

    async def _first(self, case: Case, wait: float | None) -> Outcome | Pending | None:
        """What became of the first call with this idempotency key, if there was one."""
        call = case.call
        rows = await self._store.read(
            "SELECT call, arguments_hash FROM idempotency WHERE caller = ? AND tool = ? AND key = ? AND expires_at > ?",
            (call.caller.name, case.tool.id, call.idempotency_key, self._clock.now()),
        )
        if not rows:
            return None
        first, arguments_hash = rows[0]
        if arguments_hash != case.arguments_hash:
            raise InvalidArgs(
                "This idempotency key was used with other arguments. Use a new key for a new call"
            )
        return await self.outcome(first, call.caller, wait=wait)

    async def _repeated(self, draft: admit.Draft, case: Case, wait: float | None) -> Outcome | Pending:
        """Somebody asked the same at the same moment, or used the same key: theirs is the call."""
        question = (case.call.caller.name, case.tool.id, case.arguments_hash)
        try:
            first = await self._first(case, wait) if case.call.idempotency_key is not None else None
            if first is not None:
                return first
            same = self.inbox.same(*question) or await self.inbox.take_up(*question)
        except GatewayError as refused:
            return self._refusals.refuse(draft, refused)
        if same is None:
            error = DependencyUnavailable(
                "The question could not be kept because another one was in the way. Try again"
            )
            return Outcome(call_id=case.call.id, state=State.REFUSED, error=error)
        return await self.outcome(same.call_id, case.call.caller, wait=wait)

    async def outcome(self, call_id: str, caller: Caller, *, wait: float | None = 0) -> Outcome | Pending:
        """What became of a call, for the caller who made it; waits up to `wait` seconds (None: to the end)."""
        pending = self.inbox.of_call(call_id, caller.name)
        if pending is not None or self._under_way(call_id, caller):
            told = await self._waiting.outcome(call_id, wait)
            if told is not None:
                return told
            if pending is not None:
                return Pending(
                    call_id=call_id,
                    approval_id=pending.id,
                    expires_at=pending.expires_at,
                    signature=pending.signature,
                )
            return Pending(call_id=call_id, approval_id="", expires_at=self._clock.now() + 60)
        await self._store.flush()
        kept = await self._kept.one(call_id, caller.name)
        return kept.outcome if kept is not None else await self._recorded(call_id, caller)

    def _under_way(self, call_id: str, caller: Caller) -> bool:
        """Whether this caller's call runs here, or was approved and waits for its source."""
        running, approved = self._running.get(call_id), self._approved.get(call_id)
        if running is not None:
            return running.case.call.caller.name == caller.name
        return approved is not None and approved.caller == caller.name

    async def _recorded(self, call_id: str, caller: Caller) -> Outcome:
        """The outcome of a call whose result was not kept, as far as the record tells."""
        rows = await self._store.read(
            "SELECT state, caller FROM record WHERE call = ? ORDER BY step DESC LIMIT 1", (call_id,)
        )
        if not rows or rows[0][1] != caller.name:
            return Outcome(call_id=call_id, state=State.REFUSED, error=ViewFailed("There is no such call"))
        state = State(rows[0][0])
        if not state.final:
            error: GatewayError = OutcomeUnknown(f"The call is {state}. {perform.MAY_HAVE_RUN}")
        else:
            error = ViewFailed(f"The call is {state}, but its result was not kept")
        return Outcome(call_id=call_id, state=state, error=error)

    async def answer(self, approval_id: str, answer: Answer) -> Approval:
        """A person's answer, from any channel. The agent's own surfaces never call this."""
        return await self.asking.answer(approval_id, answer)

    async def withdraw(self, call_id: str, caller: Caller) -> bool:
        """The caller takes back a call that still waits for a person, or for its source."""
        approved = self._approved.get(call_id)
        if approved is not None and approved.caller == caller.name and call_id not in self._running:
            approved.taken_back = True
            approved.changed.set()
            return True
        approval = self.inbox.of_call(call_id, caller.name)
        if approval is None:
            return False
        await self.asking.withdraw(approval)
        return True

    async def cancel(self, call_id: str, caller: Caller) -> bool:
        """Withdraw a pending call; pass a cancellation on to one that runs. Its true outcome is still recorded."""
        running = self._running.get(call_id)
        if running is not None and running.case.call.caller.name == caller.name:
            running.cancelled = True
            if running.task is not None:
                running.task.cancel()
            return True
        return await self.withdraw(call_id, caller)

    def approved(self, approval: Approval) -> None:
        """Start what a person approved; called by whoever took the answer. After the drain the next start does so."""
        if self._drained:
            return
        approved = self._approved[approval.call_id] = Approved(approval.caller.name)
        self.spawn(self._perform_approved(approval, approved))

    def ended(self, outcome: Outcome) -> None:
        """Tell those who wait that their call ended without running."""
        self._waiting.tell(outcome)

    def answered_elsewhere(self, approval: Approval) -> None:
        """Somebody else took the answer, such as another gateway on this store: tell those who wait what is known."""
        if self._under_way(approval.call_id, approval.caller):
            return
        self.asking.forget(approval.call_id)
        if approval.state is State.APPROVED:
            outcome = Outcome(call_id=approval.call_id, state=State.UNKNOWN, error=OutcomeUnknown(NOT_HERE))
        else:
            error = refusal(approval, approval.state)
            outcome = Outcome(call_id=approval.call_id, state=approval.state, error=error)
        self._waiting.tell(outcome)

    async def _perform_approved(self, approval: Approval, approved: Approved) -> None:
        """Run what was approved, or nothing: in time, same arguments, same definition. Waits for a source that is
        away."""
        try:
            if approval.expires_at <= self._clock.now():
                return await self.void(approval, ApprovalTimeout(LATE))
            case = await self._available(approval, approved)
            if approved.taken_back:
                await self.void(approval, perform.taken_back())
            elif case is None:
                await self.void(
                    approval, DependencyUnavailable("The tool's source did not come back in time")
                )
            elif (
                case.tool.pin != approval.definition_hash
                or hash_arguments(case.call.arguments) != approval.arguments_hash
            ):
                await self.void(approval, Forbidden(CHANGED))
            elif not self._still_allowed(case):
                await self.void(approval, Forbidden(admit.DENIED))
            else:
                await self._performed(case, approval.asked_at, asked=True)
        except DependencyUnavailable as error:
            await self.void(approval, error)
        finally:
            del self._approved[approval.call_id]
            self.asking.forget(approval.call_id)

    async def _available(self, approval: Approval, approved: Approved) -> Case | None:
        """The case once its source is there, or as it is when the approval's time is over or its caller is not
        interested any more."""
        changed = approved.changed
        undo = self.shelf.subscribe(lambda _before, _now: changed.set())
        try:
            while True:
                case = self.asking.case(approval)
                left = approval.expires_at - self._clock.now()
                if (case is not None and case.tool.available) or left <= 0 or approved.taken_back:
                    return case
                changed.clear()
                try:
                    async with asyncio.timeout(left):
                        await changed.wait()
                except TimeoutError:
                    return self.asking.case(approval)
        finally:
            undo()

    async def void(self, approval: Approval, error: GatewayError) -> None:
        """An approval that cannot be honoured any more: recorded as failed, nothing was sent.

        Until that is durable the next start would run the call, and who waits for it must not hear otherwise.
        """
        now = self._clock.now()
        outcome = Outcome(call_id=approval.call_id, state=State.FAILED, error=error)
        self._store.post(entries.voided(approval, error, now), keep_answered(approval, outcome, now))
        try:
            await self._store.flush()
        except DependencyUnavailable as unwritten:
            why = OutcomeUnknown(f"{MAY_RUN}. {unwritten.message}")
            outcome = Outcome(call_id=approval.call_id, state=State.UNKNOWN, error=why)
        self._waiting.tell(outcome)

    async def kept(self, caller: Caller) -> Page:
        """Results that wait for this caller's acknowledgement."""
        await self._store.flush()
        return await self._kept.waiting(caller.name, self._clock.now())

    async def acknowledge(self, caller: Caller, call_ids: Sequence[str]) -> int:
        return await self._kept.acknowledge(caller.name, call_ids, self._clock.now())

    async def purge(self) -> None:
        await self._kept.purge(self._clock.now())

    def running(self) -> list[perform.Performance]:
        return list(self._running.values())

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that belongs to no connection; its faults are logged, never lost."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("A call's task failed", exc_info=task.exception())

    async def drain(self, seconds: float) -> None:
        """Let running calls end, those approved meanwhile too; what is still running then is cancelled and recorded
        as unknown."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self._tasks and (left := deadline - loop.time()) > 0:
            await asyncio.wait(self._tasks, timeout=left)
        self._drained = True
        late = set(self._tasks)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def fault(self, call: Call) -> Outcome:
        return Outcome(
            call_id=call.id,
            state=State.FAILED,
            error=Internal("Something went wrong inside the gateway; its log says what"),
        )

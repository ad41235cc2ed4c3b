"""`Calls`: the one way in for every surface, and the place where calls go on without their sender."""

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from agent_gate.access.quota import Quota
from agent_gate.approval.inbox import Inbox
from agent_gate.calls import admit, perform
from agent_gate.calls.approved import ApprovedCalls
from agent_gate.calls.asking import Asking, Ending, already, outcome_of
from agent_gate.calls.entries import Ahead
from agent_gate.calls.perform import Waiting
from agent_gate.calls.refusals import Refusals
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import Call, Caller, Case, Decision, Outcome, Pending, State, hash_arguments
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock, Conversation
from agent_gate.core.tasks import KeptTasks
from agent_gate.errors import (
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
from agent_gate.results.kept import KeptPage, KeptResults
from agent_gate.store.statement import Conflict, Store

log = logging.getLogger("agent_gate.calls")
TELL_SECONDS = 2.0
"""How long the answer to an approval waits to say what became of the call."""
UNKEPT = "The question could not be kept because another one was in the way. Try again"


async def run_to_the_end(work: Coroutine[Any, Any, Approval]) -> Approval:
    """Take an answer whole, also when whoever brought it leaves meanwhile: once durable, it must have its effect."""
    return await asyncio.shield(asyncio.ensure_future(work))


def asking_a_person(decision: Decision) -> Decision:
    """The decision of the rules where only a person can say yes: what allows, or asks the caller's client, asks them."""
    if decision.effect == "ask" and decision.via == "person":
        return decision
    reason = f"{decision.reason}; a person is asked all the same" if decision.reason else ""
    return dataclasses.replace(decision, effect="ask", via="person", grant=None, reason=reason)


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
        ahead: Ahead,
        counter: Quota,
        admission: admit.Admission,
        asking: Asking,
        approved: ApprovedCalls,
        performing: perform.Performing,
        waiting: Waiting,
        traced: bool,
    ) -> None:
        self._store, self._clock, self.shelf, self.inbox = store, clock, shelf, inbox
        self._refusals, self._ahead, self._admission = refusals, ahead, admission
        self._asking, self._approved, self._performing, self._waiting = asking, approved, performing, waiting
        self.counter, self._traced = counter, traced
        self._kept = KeptResults(store)
        self._tasks = KeptTasks(log, "A call's task failed")
        self._drained = self._held_up = False

    def take_terms(self, check: Callable[[Approval, Answer], None]) -> None:
        """Let answers carry terms, which `check` refuses where they do not fit the question."""
        self._asking.take_terms(check)

    async def run(self, call: Call, *, wait: float | None = None) -> Outcome | Pending:
        """Take a call from its surface to its outcome.

        A call that must wait for a person is held for `wait` seconds (None: until it ends), then `Pending`.
        """
        if failpoint.armed:
            failpoint.reach("after_receive")
        received = self._clock.now()
        if self._traced or call.trace is not None:
            call = self._with_trace(call)
        draft = admit.Draft(call)
        try:
            case = admit.admit(self._admission, draft)
            if failpoint.armed:
                failpoint.reach("after_decide")
            if case.decision.effect == "allow":
                if (
                    call.idempotency_key is not None
                    and (first := await self._find_first(case, wait)) is not None
                ):
                    return first
                return await self._performing.perform(case, received, asked=False)
            approval = await self._ask(case, received)
        except GatewayError as error:
            return self._refusals.refuse(draft, error)
        except Conflict:
            return await self._join_first(draft, case, wait)
        if case.decision.via == "client" and call.conversation is not None and call.conversation.can_be_asked:
            return await self._ask_client(approval, call.conversation, wait)
        return await self.await_outcome(approval.call_id, call.caller, wait=wait)

    def _own(self, call: Call, decision: Decision) -> Case:
        """A call that the gateway or its operator makes, with the decision that no rule took."""
        draft = admit.Draft(call)
        self._admission.resolve(draft)
        self._admission.validate(draft)
        draft.signature, draft.decision = draft.tool.sign(draft.call.arguments), decision
        draft.arguments_hash = hash_arguments(draft.call.arguments)
        return draft.case()

    async def perform_for(self, call: Call, reason: str) -> Outcome:
        """Perform what a person does at the page or the terminal; it is on record like any other call."""
        case = self._own(call, Decision(effect="allow", reason=reason))
        return await self._performing.perform(case, self._clock.now(), asked=False)

    async def ask_about(self, call: Call, reason: str, approvers: tuple[str, ...] = ()) -> Approval:
        """Put a question of the gateway's own to people, whatever the rules say of its tool."""
        decision = Decision(effect="ask", reason=reason, approvers=approvers, where=reason)
        case = self._own(call, decision)
        try:
            return await self._ask(case, self._clock.now())
        except Conflict:
            same = await self.inbox.take_up(call.caller.name, case.tool.id, case.arguments_hash)
            if same is None:
                raise DependencyUnavailable(UNKEPT) from None
            return same

    async def ask_to_let_in(self, call: Call, number: str) -> Approval:
        """Ask a person about a call that no rule can allow by itself, though one can deny it. A yes must say `number`."""
        return await self._ask(self._decided_by_people(call), self._clock.now(), number)

    async def let_in(self, call: Call) -> bool:
        """Perform such a call where its own person, who proved who they are, may say yes to it; false where a rule wants
        the yes of others."""
        case, person = self._decided_by_people(call), call.caller.person
        asked = case.decision
        if asked.count > 1 or person == asked.not_by or (asked.approvers and person not in asked.approvers):
            return False
        allowed = dataclasses.replace(asked, effect="allow", reason=f"{person} logged in for it")
        outcome = await self._performing.perform(
            replace(case, decision=allowed), self._clock.now(), asked=False
        )
        if outcome.error is not None:
            raise outcome.error
        return True

    def _decided_by_people(self, call: Call) -> Case:
        """A call of which rules can say no, or who says yes, and never yes."""
        draft = admit.Draft(call)
        try:
            self._admission.resolve(draft)
            self._admission.validate(draft)
            self._admission.decide(draft)
        except GatewayError as error:
            self._refusals.refuse(draft, error)
            raise
        draft.decision = asking_a_person(draft.decision)
        draft.arguments_hash = hash_arguments(draft.call.arguments)
        return draft.case()

    def refuse(self, call: Call, error: GatewayError) -> Outcome:
        """Put a call on record that its surface turned away; the quota holds for it too."""
        draft = admit.Draft(call)
        try:
            self._admission.quota(draft)
        except GatewayError as refused:
            error = refused
        return self._refusals.refuse(draft, error)

    def _with_trace(self, call: Call) -> Call:
        """The call with a trace it can be found by: the caller's where it is one, else its own."""
        if call.trace is not None and well_formed(call.trace):
            return call
        return replace(call, trace=root(call.id) if self._traced else None)

    async def _ask_client(
        self, approval: Approval, conversation: Conversation, wait: float | None
    ) -> Outcome | Pending:
        """A rule lets the caller's own client answer: ask it now, or hand the question over where it has to come back."""
        if conversation.comes_back:
            return Pending(
                call_id=approval.call_id,
                approval_id=approval.id,
                expires_at=approval.asked.expires_at,
                signature=approval.signature,
                question=approval,
            )
        self.spawn(self._put_to_client(approval, conversation))
        return await self.await_outcome(approval.call_id, approval.caller, wait=wait)

    async def _put_to_client(self, approval: Approval, conversation: Conversation) -> None:
        answer = await conversation.ask(approval)
        if answer is not None:
            await self._take_client_answer(approval.id, answer)

    async def _take_client_answer(self, approval_id: str, answer: Answer) -> None:
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
                await self._take_client_answer(approval.id, answer)

    async def _ask(self, case: Case, received: float, number: str = "") -> Approval:
        """Ask a person; whoever joined a question that cannot be kept is told so. Where the same one was open elsewhere,
        `_join_first` joins them to that."""
        try:
            return await self._asking.ask(case, received, number)
        except GatewayError as error:
            self._tell_unkept(case, error)
            raise

    def _tell_unkept(self, case: Case, error: GatewayError) -> Outcome:
        """Tell those who joined a question that there is none."""
        outcome = Outcome(call_id=case.call.id, state=State.REFUSED, error=error)
        self._waiting.tell(outcome)
        return outcome

    async def _find_first(self, case: Case, wait: float | None) -> Outcome | Pending | None:
        """What became of the first call with this idempotency key, if there was one."""
        call = case.call
        rows = await self._store.read(
            "SELECT call, arguments_hash FROM idempotency WHERE caller = ? AND tool = ? AND key = ? AND expires_at > ?",
            (call.caller.name, case.tool.id, call.idempotency_key, self._clock.now()),
        )
        if not rows:
            return None
        first, arguments_hash = rows[0]
        if arguments_hash != perform.hash_for_key(case):
            raise InvalidArgs(
                "This idempotency key was used with other arguments. Use a new key for a new call"
            )
        return await self.await_outcome(first, call.caller, wait=wait)

    async def _join_first(self, draft: admit.Draft, case: Case, wait: float | None) -> Outcome | Pending:
        """Somebody asked the same at the same moment, or used the same key: theirs is the call."""
        question = (case.call.caller.name, case.tool.id, case.arguments_hash)
        try:
            first = await self._find_first(case, wait) if case.call.idempotency_key is not None else None
            if first is not None:
                return first
            same = self.inbox.same(*question) or await self.inbox.take_up(*question)
        except GatewayError as refused:
            self._tell_unkept(case, refused)
            return self._refusals.refuse(draft, refused)
        if same is None:
            return self._tell_unkept(case, DependencyUnavailable(UNKEPT))
        if self._waiting.awaited((case.call.id,)):
            self.spawn(self._pass_on(case.call, same))
        return await self.await_outcome(same.call_id, case.call.caller, wait=wait)

    async def _pass_on(self, call: Call, same: Approval) -> None:
        """Those who wait for a question that was not kept wait for the one that was open already."""
        outcome = await self.await_outcome(same.call_id, call.caller, wait=None)
        if isinstance(outcome, Outcome):
            self._waiting.tell(outcome, call.id)

    async def await_outcome(
        self, call_id: str, caller: Caller, *, wait: float | None = 0
    ) -> Outcome | Pending:
        """What became of a call, for the caller who made it; waits up to `wait` seconds (None: to the end)."""
        pending = self.inbox.of_call(call_id, caller.name)
        if pending is not None or self._under_way(call_id, caller):
            told = await self._waiting.await_outcome(call_id, wait)
            if told is not None:
                return told
            if pending is not None:
                return Pending(
                    call_id=call_id,
                    approval_id=pending.id,
                    expires_at=pending.asked.expires_at,
                    signature=pending.signature,
                )
            return Pending(call_id=call_id, approval_id="", expires_at=self._clock.now() + 60)
        await self._store.flush()
        told = await self._read_known(call_id, caller)
        if told.state.final or not self._store.shared:
            return told
        return await self._await_elsewhere(call_id, caller, wait)

    async def _read_known(self, call_id: str, caller: Caller) -> Outcome:
        """What the store says became of a call. Another gateway may end it between one look and the next."""
        kept = await self._kept.read_one(call_id, caller.name)
        if kept is not None:
            return kept.outcome
        recorded = await self._read_recorded(call_id, caller)
        if recorded.state.final and self._store.shared:
            kept = await self._kept.read_one(call_id, caller.name)
        return kept.outcome if kept is not None else recorded

    async def _await_elsewhere(self, call_id: str, caller: Caller, wait: float | None) -> Outcome | Pending:
        """What becomes of a call that another gateway runs; a notice says so where its result is kept."""
        telling = asyncio.ensure_future(self._waiting.await_outcome(call_id, wait))
        try:
            known = await self._read_known(call_id, caller)
            if known.state.final:
                return known
            told = await telling
        finally:
            telling.cancel()
        known = told or await self._read_known(call_id, caller)
        if known.state.final:
            return known
        return Pending(call_id=call_id, approval_id="", expires_at=self._clock.now() + 60)

    def _under_way(self, call_id: str, caller: Caller) -> bool:
        """Whether this caller's call runs here, or was approved and waits for its source."""
        running = self._performing.running.get(call_id)
        if running is not None:
            return running.case.call.caller.name == caller.name
        return self._approved.holds(call_id, caller.name)

    async def _read_recorded(self, call_id: str, caller: Caller) -> Outcome:
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
        return await run_to_the_end(self._answer(approval_id, answer))

    async def _answer(self, approval_id: str, answer: Answer) -> Approval:
        approval = next((open_one for open_one in self.inbox.open() if open_one.id == approval_id), None)
        if approval is None:
            raise already(await self.inbox.get(approval_id))
        if approval.asked.expires_at <= self._clock.now():
            raise already(self._act(await self._asking.expire(approval)))
        return self._act(await self._asking.answer(approval, answer))

    async def finish_agreed(self, known: Collection[str] | None = None) -> set[str]:
        """End the questions that enough people said yes to and that nobody ended. Of those only the `known` ones, where
        somebody may be about to; all that there are."""
        found = {one.id: one for one in self.inbox.open() if await self._asking.is_agreed(one)}
        for approval in found.values():
            if known is None or approval.id in known:
                with suppress(InvalidArgs):
                    self._act(await self._asking.finish(approval))
        return set(found)

    def _act(self, ending: Ending) -> Approval:
        """Do what the end of a question leads to: run the call, or tell those who wait that it will not."""
        approval = ending.approval
        if approval is None or not ending.ours:
            if approval is not None:
                self._answered_elsewhere(approval)
            raise already(approval)
        if approval.state is not State.PENDING:
            self._go_on(approval)
        return approval

    def _go_on(self, approval: Approval) -> None:
        """After an answer: run the call where that is for this gateway to do, else leave it to the one that runs it."""
        if approval.state is not State.APPROVED:
            self._asking.forget(approval.call_id)
            self._waiting.tell(outcome_of(approval))
        elif approval.gateway == self.inbox.gateway:
            self.start(approval)

    def start(self, approval: Approval) -> None:
        """Run what a person approved, once. After the drain another gateway does so, or the next start of this one."""
        if not self._drained and self._approved.note(approval):
            self.spawn(self._approved.perform(approval))

    def _answered_elsewhere(self, approval: Approval) -> None:
        """Somebody else took the answer: tell those who wait what is known."""
        if not self._under_way(approval.call_id, approval.caller):
            self._go_on(approval)

    async def hear_questions(self, ids: Collection[str] | None) -> None:
        """Other gateways asked or answered these questions: show them, and act on the answers that are for here."""
        for approval in await self.inbox.take_news(ids):
            self._answered_elsewhere(approval)

    async def hear_results(self, call_ids: Collection[str] | None) -> None:
        """Other gateways kept results of these calls: tell those who wait for one here."""
        for call_id in self._waiting.awaited(call_ids):
            kept = await self._kept.read_of_call(call_id)
            if kept is not None:
                self._waiting.tell(kept.outcome)

    async def expire_due(self) -> None:
        """Close the questions whose time is over; while the store cannot, that is said once."""
        for approval in self.inbox.due():
            try:
                await run_to_the_end(self._expire(approval))
            except DependencyUnavailable as error:
                if not self._held_up:
                    log.warning("Questions whose time is over stay open for now: %s", error.message)
                self._held_up = True
                return
            except GatewayError as error:
                log.info(
                    "An approval could not be closed", extra={"approval": approval.id, "why": error.message}
                )
        self._held_up = False

    async def _expire(self, approval: Approval) -> Approval:
        return self._act(await self._asking.expire(approval))

    async def end_denied(self) -> None:
        """After the rules changed: a question whose call they deny now ends itself."""
        for approval in self.inbox.open():
            why = self._approved.why_denied(approval)
            if why is None:
                continue
            try:
                await run_to_the_end(self._refuse_question(approval, why))
            except GatewayError as error:
                log.info("A question stays open", extra={"approval": approval.id, "why": error.message})

    async def _refuse_question(self, approval: Approval, why: Forbidden) -> Approval:
        return self._act(await self._asking.refuse(approval, why))

    async def learn_outcome(self, approval: Approval, wait: float = TELL_SECONDS) -> Outcome | None:
        """What became of the call of an approved question, where that is known within `wait` seconds; `approved` where
        its source keeps it waiting."""
        if approval.state is not State.APPROVED:
            return None
        outcome = await self.await_outcome(approval.call_id, approval.caller, wait=wait)
        if isinstance(outcome, Outcome) and outcome.state.final:
            return outcome
        return self._approved.why_waiting(approval)

    async def withdraw(self, call_id: str, caller: Caller) -> bool:
        """The caller takes back a call that still waits for a person, or for its source."""
        if self._approved.take_back(call_id, caller.name):
            return True
        approval = self.inbox.of_call(call_id, caller.name)
        if approval is None:
            return False
        await run_to_the_end(self._withdraw(approval))
        return True

    async def _withdraw(self, approval: Approval) -> Approval:
        return self._act(await self._asking.withdraw(approval))

    async def cancel(self, call_id: str, caller: Caller) -> bool:
        """Withdraw a pending call; pass a cancellation on to one that runs. Its true outcome is still recorded."""
        running = self._performing.running.get(call_id)
        if running is not None and running.case.call.caller.name == caller.name:
            running.cancelled = True
            if running.task is not None:
                running.task.cancel()
            return True
        return await self.withdraw(call_id, caller)

    async def void(self, approval: Approval, error: GatewayError) -> None:
        """Record that an approved call will not run, and tell those who wait."""
        await self._approved.void(approval, error)

    async def read_kept(self, caller: Caller) -> KeptPage:
        """Results that wait for this caller's acknowledgement."""
        await self._store.flush()
        return await self._kept.read_waiting(caller.name, self._clock.now())

    async def acknowledge(self, caller: Caller, call_ids: Sequence[str]) -> int:
        return await self._kept.acknowledge(caller.name, call_ids, self._clock.now())

    async def purge(self) -> None:
        await self._kept.purge(self._clock.now())

    def last_called(self, name: str) -> float | None:
        """When an agent last called since the gateway started."""
        last = self.counter.last(name)
        return None if last is None else self._clock.now() - (self._clock.monotonic() - last)

    def running(self) -> list[perform.Performance]:
        return list(self._performing.running.values())

    def runs(self, call_id: str) -> bool:
        """Whether that call is performed here now."""
        return call_id in self._performing.running

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that belongs to no connection; its faults are logged, never lost."""
        self._tasks.start(work)

    async def drain(self, seconds: float) -> None:
        """Let running calls end, those approved meanwhile too; what is still running then is cancelled and recorded
        as unknown."""
        await self._tasks.wait(seconds)
        self._drained = True
        await self._tasks.cancel()

    async def close(self) -> None:
        """Write down what is not on record yet."""
        self._ahead.catch_up()
        await self._refusals.flush()

    def fault(self, call: Call) -> Outcome:
        return Outcome(
            call_id=call.id,
            state=State.FAILED,
            error=Internal("Something went wrong inside the gateway; its log says what"),
        )

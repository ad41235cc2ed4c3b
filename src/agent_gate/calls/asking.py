"""From *ask* to an answer: making the question, taking the answer, and what each answer leads to."""

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from msgspec import structs

from agent_gate.approval.grants import Grants
from agent_gate.approval.inbox import Inbox
from agent_gate.calls import entries
from agent_gate.calls.perform import remember_key
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import Call, Case, Outcome, State, new_id
from agent_gate.core.catalog import Shelf
from agent_gate.core.ports import Clock
from agent_gate.core.signature import PLACEHOLDER
from agent_gate.core.tool import Tool
from agent_gate.errors import (
    ApprovalDenied,
    ApprovalTimeout,
    DependencyUnavailable,
    GatewayError,
    InvalidArgs,
)
from agent_gate.observe import failpoint
from agent_gate.observe.metrics import Metrics
from agent_gate.observe.redact import mask_arguments
from agent_gate.observe.trace import trace_of
from agent_gate.results.kept import keep
from agent_gate.store.statement import Conflict, Statement

log = logging.getLogger("agent_gate.approvals")
NOBODY = "nobody"
LONGEST_IN_SENTENCE = 200


def clipped(text: str) -> str:
    """What of a value a sentence holds; the card shows it whole beside it."""
    return text if len(text) <= LONGEST_IN_SENTENCE else f"{text[: LONGEST_IN_SENTENCE - 1]}…"


def sentence(case: Case) -> str:
    """The tool's own `ask` template in plain words; arguments it names are filled in."""
    arguments, secret = case.call.arguments, case.tool.definition.secret

    def filled(found: re.Match[str]) -> str:
        name = found[1]
        return clipped(str(arguments[name])) if name in arguments and name not in secret else found[0]

    return PLACEHOLDER.sub(filled, case.tool.definition.ask)


def refusal(approval: Approval, state: State) -> GatewayError:
    """What the caller is told when its call will not run."""
    if state is State.EXPIRED:
        return ApprovalTimeout("Approval timed out")
    if state is State.WITHDRAWN:
        return ApprovalDenied("Withdrawn by the caller")
    said = f"\nReason: {approval.reason}" if approval.reason else ""
    return ApprovalDenied(f"Denied by user{said}")


async def to_the_end(work: Coroutine[Any, Any, Approval]) -> Approval:
    """Take an answer whole, also when whoever brought it leaves meanwhile: once durable, it must have its effect."""
    return await asyncio.shield(asyncio.ensure_future(work))


def already(approval: Approval | None) -> InvalidArgs:
    """Why a late, second or foreign answer changes nothing."""
    if approval is None:
        return InvalidArgs("There is no such approval")
    who = f" by {approval.answered_by}" if approval.answered_by and approval.answered_by != NOBODY else ""
    return InvalidArgs(f"Too late: this approval is already {approval.state}{who}. Nothing was changed")


class Asking:
    """Holds the live cases of open questions, so that an answer finds the caller's own conversation again."""

    def __init__(
        self,
        inbox: Inbox,
        grants: Grants,
        shelf: Shelf,
        clock: Clock,
        metrics: Metrics,
        *,
        timeout: float,
        approved: Callable[[Approval], None],
        ended: Callable[[Outcome], None],
        elsewhere: Callable[[Approval], None],
    ) -> None:
        self._inbox, self._grants, self._shelf, self._clock, self._metrics = (
            inbox,
            grants,
            shelf,
            clock,
            metrics,
        )
        self.timeout = timeout
        self._approved, self._ended, self._elsewhere = approved, ended, elsewhere
        self._cases: dict[str, Case] = {}
        self._held_up = False

    async def ask(self, case: Case, received: float) -> Approval:
        """Make the question durable and show it; the same question open already is that question."""
        open_already = self._inbox.same(case.call.caller.name, case.tool.id, case.arguments_hash)
        if open_already is not None:
            return open_already
        self._inbox.check_room(case.call.caller.name, case.call.caller.max_pending)
        approval = self._approval(case)
        also = [entries.pending(case, approval, received)]
        if case.call.idempotency_key:
            also.append(remember_key(case, approval.asked_at))
        failpoint.reach("before_pending_commit")
        self._cases[approval.call_id] = case
        await self._put(approval, also)
        failpoint.reach("after_notify")
        log.info(
            "Waiting for a person",
            extra={
                "approval": approval.id,
                "call": approval.call_id,
                "trace_id": trace_of(approval.call_id, approval.trace).trace_id,
                "signature": approval.signature,
                "agent": case.call.caller.name,
            },
        )
        return approval

    async def _put(self, approval: Approval, also: list[Statement]) -> None:
        """Keep the question; whoever joined one that cannot be kept is told so."""
        try:
            await self._inbox.put(approval, *also)
        except (Conflict, GatewayError) as error:
            self.forget(approval.call_id)
            told = (
                error
                if isinstance(error, GatewayError)
                else DependencyUnavailable("The question could not be kept. Try again")
            )
            self._ended(Outcome(call_id=approval.call_id, state=State.REFUSED, error=told))
            raise

    def _approval(self, case: Case) -> Approval:
        now, call = self._clock.now(), case.call
        return Approval(
            id=new_id(),
            call_id=call.id,
            caller=call.caller,
            tool_id=case.tool.id,
            wire=case.tool.wire,
            signature=case.signature,
            arguments=call.arguments,
            arguments_hash=case.arguments_hash,
            definition_hash=case.definition_hash,
            decision=case.decision,
            asked_at=now,
            expires_at=now + (case.decision.lifetime or self.timeout),
            session=call.session,
            surface=call.surface,
            mode=call.mode,
            sentence=sentence(case),
            secret=case.tool.definition.secret,
            client_id=call.client_id,
            idempotency_key=call.idempotency_key,
            timeout=call.timeout,
            meta=call.meta,
            trace=call.trace,
        )

    def case(self, approval: Approval) -> Case | None:
        """The case of an approval: as it was asked, or rebuilt after a restart; None when its tool is not there."""
        live = self._cases.get(approval.call_id)
        tool = self._shelf.catalog.find(approval.tool_id)
        if tool is None:
            return None
        return structs.replace(live, tool=tool) if live is not None else rebuilt(approval, tool)

    def forget(self, call_id: str) -> None:
        self._cases.pop(call_id, None)

    async def answer(self, approval_id: str, answer: Answer) -> Approval:
        """Take a person's answer. The first one wins; `approved` starts the call, a denial ends it."""
        approval = next((a for a in self._inbox.open() if a.id == approval_id), None)
        if approval is None:
            raise already(await self._inbox.get(approval_id))
        if approval.expires_at <= self._clock.now():
            raise already(await self.expire(approval))
        self._inbox.check_approver(approval, answer)
        if answer.verdict == "deny":
            return await self._close(approval, State.DENIED, answer)
        if answer.lifetime == "session" and approval.session is None:
            raise InvalidArgs("This call belongs to no session. Answer once, for an hour or always")
        return await to_the_end(self._approve(approval, answer))

    async def _approve(self, approval: Approval, answer: Answer) -> Approval:
        granted = self._grants.from_answer(approval, answer.lifetime, answer.person)
        also = [granted[1]] if granted else []
        resolved = await self._resolve(approval, State.APPROVED, answer, also)
        if granted:
            self._grants.remember(granted[0])
        self._approved(resolved)
        return resolved

    async def expire(self, approval: Approval) -> Approval:
        nobody = Answer(verdict="deny", person=NOBODY, channel="clock")
        return await self._close(approval, State.EXPIRED, nobody)

    async def withdraw(self, approval: Approval) -> Approval:
        caller = Answer(verdict="deny", person=approval.caller.name, channel=approval.surface)
        return await self._close(approval, State.WITHDRAWN, caller)

    async def expire_due(self) -> None:
        """Close the questions whose time is over; while the store cannot, that is said once."""
        for approval in self._inbox.due():
            try:
                await self.expire(approval)
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

    async def _close(self, approval: Approval, state: State, answer: Answer) -> Approval:
        return await to_the_end(self._end(approval, state, answer))

    async def _end(self, approval: Approval, state: State, answer: Answer) -> Approval:
        outcome = Outcome(
            call_id=approval.call_id,
            state=state,
            error=refusal(replace(approval, reason=answer.reason), state),
        )
        also = [keep_answered(approval, outcome, self._clock.now())]
        resolved = await self._resolve(approval, state, answer, also)
        self.forget(approval.call_id)
        self._ended(outcome)
        return resolved

    async def _resolve(
        self, approval: Approval, state: State, answer: Answer, also: list[Statement]
    ) -> Approval:
        now = self._clock.now()
        who = {
            "by": answer.person,
            "channel": answer.channel,
            "lifetime": answer.lifetime,
            "reason": answer.reason,
        }
        failpoint.reach("before_approve_commit")
        try:
            resolved = await self._inbox.resolve(
                approval, state, answer, [entries.answered(approval, state, now, who), *also]
            )
        except Conflict:
            first = await self._inbox.get(approval.id)
            if first is not None:
                self._elsewhere(first)
            raise already(first) from None
        failpoint.reach("after_approve_commit")
        self._metrics.waits.observe(now - approval.asked_at, answer.channel, state)
        log.info(
            "Approval resolved",
            extra={
                "approval": approval.id,
                "call": approval.call_id,
                "trace_id": trace_of(approval.call_id, approval.trace).trace_id,
                "state": str(state),
                "by": answer.person,
                "channel": answer.channel,
            },
        )
        self._inbox.announce(resolved)
        return resolved


def keep_answered(approval: Approval, outcome: Outcome, now: float) -> Statement:
    """Keep how an approval ended without its call being run; its tool need not be there any more."""
    shown = entries.text(mask_arguments(approval.arguments, approval.secret))
    return keep(call_of(approval), approval.wire, approval.signature, shown, outcome, now)


def call_of(approval: Approval) -> Call:
    """The call as the store remembers it."""
    return Call(
        tool=approval.tool_id,
        arguments=approval.arguments,
        caller=approval.caller,
        id=approval.call_id,
        surface=approval.surface,
        mode=approval.mode,
        session=approval.session,
        client_id=approval.client_id,
        idempotency_key=approval.idempotency_key,
        timeout=approval.timeout,
        meta=approval.meta,
        trace=approval.trace,
    )


def rebuilt(approval: Approval, tool: Tool) -> Case:
    """The case as the store remembers it."""
    return Case(
        call=call_of(approval),
        tool=tool,
        signature=approval.signature,
        decision=approval.decision,
        arguments_hash=approval.arguments_hash,
        definition_hash=approval.definition_hash,
    )

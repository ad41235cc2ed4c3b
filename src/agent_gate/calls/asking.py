"""From *ask* to an answer: making the question durable, and its end. What an end leads to is for `Calls` to do."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from agent_gate.approval.grants import Grants
from agent_gate.approval.inbox import Inbox
from agent_gate.approval.numbers import UNSAID, WRONG
from agent_gate.approval.pictures import keep_picture, take_picture
from agent_gate.approval.render import clip
from agent_gate.approval.risk import standing_risks
from agent_gate.calls import entries
from agent_gate.calls.admit import DENIED
from agent_gate.calls.in_force import InForce
from agent_gate.calls.perform import remember_key
from agent_gate.core.approval import Answer, Approval, Asked, Hashes
from agent_gate.core.call import NOBODY, Case, Outcome, State, new_id
from agent_gate.core.catalog import Shelf
from agent_gate.core.facts import beside
from agent_gate.core.ports import Clock, Picture, Witness
from agent_gate.core.signature import PLACEHOLDER
from agent_gate.core.tool import Tool
from agent_gate.errors import (
    ApprovalDenied,
    ApprovalTimeout,
    Forbidden,
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
RULES = "rules"
"""The channel of a question that the rules of now answer."""
LONGEST_IN_SENTENCE = 200
"""Of a value in a sentence; the card shows it whole beside it."""
OPTIONAL = re.compile(r"\[([^\[\]{}]*\{(\w+)\}[^\[\]{}]*)\]")
"""A part of a sentence around one argument, as `[ on {entity_id}]`."""


def sentence(case: Case) -> str:
    """The tool's own `ask` template in plain words; arguments it names are filled in, and a part in square
    brackets is left out where the call does not have its argument."""
    arguments, secret = beside(case.call.arguments, case.facts), case.tool.definition.secret

    def kept(found: re.Match[str]) -> str:
        return found[1] if arguments.get(found[2]) is not None else ""

    def filled(found: re.Match[str]) -> str:
        name = found[1]
        return (
            clip(str(arguments[name]), LONGEST_IN_SENTENCE)
            if name in arguments and name not in secret
            else found[0]
        )

    return PLACEHOLDER.sub(filled, OPTIONAL.sub(kept, case.tool.definition.ask))


def refusal(approval: Approval) -> GatewayError:
    """What the caller is told when its call will not run."""
    reason = approval.answered.reason
    if approval.state is State.EXPIRED:
        return ApprovalTimeout("Approval timed out")
    if approval.state is State.WITHDRAWN:
        return ApprovalDenied("Withdrawn by the caller")
    if approval.answered.channel == RULES:
        return Forbidden(DENIED, details={"reason": reason} if reason else None)
    return ApprovalDenied(f"Denied by user\nReason: {reason}" if reason else "Denied by user")


def outcome_of(approval: Approval) -> Outcome:
    """What the call of a question ended in that was not answered with yes."""
    return Outcome(call_id=approval.call_id, state=approval.state, error=refusal(approval))


def already(approval: Approval | None) -> InvalidArgs:
    """Why a late, second or foreign answer changes nothing."""
    if approval is None:
        return InvalidArgs("There is no such approval")
    by = approval.answered.by
    who = f" by {by}" if by and by != NOBODY else ""
    return InvalidArgs(f"Too late: this approval is already {approval.state}{who}. Nothing was changed")


def refuse_terms(_approval: Approval, answer: Answer) -> None:
    """A question that asks for no terms takes none."""
    if answer.terms:
        raise InvalidArgs("This question can be answered with yes or no; there is nothing to make narrower")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a question ended. Where `ours` is false somebody else took the answer, such as another gateway on this
    store, and `approval` is what is known of it."""

    approval: Approval | None
    ours: bool = True


class Asking:
    """Holds the live cases of open questions, so that an answer finds the caller's own conversation again."""

    def __init__(
        self,
        inbox: Inbox,
        grants: Grants,
        shelf: Shelf,
        clock: Clock,
        metrics: Metrics,
        in_force: InForce,
        witnesses: Mapping[str, Witness],
    ) -> None:
        self._inbox, self._grants, self._shelf, self._witnesses = inbox, grants, shelf, witnesses
        self._clock, self._metrics, self._in_force = clock, metrics, in_force
        self._cases: dict[str, Case] = {}
        self._check_terms: Callable[[Approval, Answer], None] = refuse_terms

    def take_terms(self, check: Callable[[Approval, Answer], None]) -> None:
        """Let answers carry terms; `check` raises `InvalidArgs` where a yes cannot be given on them."""
        self._check_terms = check

    async def ask(self, case: Case, received: float, number: str = "") -> Approval:
        """Make the question durable and show it; the same question open already is that question. A yes must say the
        `number` where there is one."""
        witness, picture = self._witnesses.get(case.tool.source), None
        open_already = self._open_already(case)
        if open_already is None and witness is not None:
            picture = await take_picture(witness, case)
            open_already = self._open_already(case)
        if open_already is not None:
            return open_already
        approval = self._approval(case, picture, number)
        also = [entries.pending(case, approval, received)]
        if picture is not None:
            also.append(keep_picture(approval, picture))
        if case.call.idempotency_key:
            also.append(remember_key(case, approval.asked.at))
        await self._put(case, approval, also)
        return approval

    async def _put(self, case: Case, approval: Approval, also: list[Statement]) -> None:
        failpoint.reach("before_pending_commit")
        self._cases[approval.call_id] = case
        try:
            await self._inbox.put(approval, *also)
        except (Conflict, GatewayError) as error:
            self.forget(approval.call_id)
            if isinstance(error, Conflict):
                await self._inbox.check_kept_room(approval)
            raise
        failpoint.reach("after_notify")
        more = {"signature": approval.signature, "agent": case.call.caller.name}
        log.info("Waiting for a person", extra=named_in_log(approval) | more)

    def _open_already(self, case: Case) -> Approval | None:
        """The same question where it is open; where it is not, there is room for it or this raises."""
        caller = case.call.caller
        same = self._inbox.same(caller.name, case.tool.id, case.arguments_hash)
        if same is None:
            self._inbox.check_room(caller.name, caller.max_pending)
        return same

    def _approval(self, case: Case, picture: Picture | None, number: str) -> Approval:
        return Approval(
            id=new_id(),
            call=structs.replace(case.call, tool=case.tool.id, conversation=None, sender=None),
            decision=case.decision,
            signature=case.signature,
            hashes=Hashes(case.arguments_hash, case.definition_hash),
            asked=self._asked(case, picture, number),
            gateway=self._inbox.gateway,
        )

    def _asked(self, case: Case, picture: Picture | None, number: str) -> Asked:
        now = self._clock.now()
        return Asked(
            at=now,
            expires_at=now + (case.decision.lifetime or self._in_force.terms.settings.approval_timeout),
            wire=case.tool.wire,
            sentence=sentence(case),
            secret=case.tool.definition.secret,
            facts=case.facts,
            picture=picture.media_type if picture is not None else "",
            number=number,
            risks=tuple(standing_risks(case.tool.traits)),
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

    def performed(self, approval: Approval) -> None:
        """An approved call ended, or the next start takes it up; what only it needed goes where it ended."""
        self.forget(approval.call_id)
        self._inbox.secrets.forget_performed(approval)

    async def answer(self, approval: Approval, answer: Answer) -> Ending:
        """Take a person's answer to an open question; the first one wins."""
        self._inbox.check_approver(approval, answer)
        if answer.verdict == "deny":
            return await self._end(approval, State.DENIED, answer)
        if approval.asked.number and answer.lifetime != "once":
            raise InvalidArgs("A yes to this counts once; it cannot be remembered for the next")
        if approval.asked.number and not answer.number:
            raise InvalidArgs(UNSAID)
        if answer.number != approval.asked.number:
            return await self._end(approval, State.DENIED, replace(answer, verdict="deny", reason=WRONG))
        self._check_terms(approval, answer)
        if answer.lifetime == "session" and approval.session is None:
            raise InvalidArgs("This call belongs to no session. Answer once, for an hour or always")
        if approval.decision.count > 1:
            return await self._agree(approval, answer)
        granted = self._grants.from_answer(approval, answer.lifetime, answer.person)
        ending = await self._approve(approval, answer, *(granted[1:] if granted else ()))
        if granted and ending.ours:
            self._grants.remember(granted[0])
        return ending

    async def _agree(self, approval: Approval, answer: Answer) -> Ending:
        """One yes of several: it ends the question where it is the last one that was missing."""
        if answer.lifetime != "once":
            raise InvalidArgs("More than one person has to say yes to this, each time anew. Answer once")
        wanted = approval.decision.count
        agreed = await self._inbox.look_again(approval)
        if answer.person not in agreed.yeses:
            try:
                agreed = await self._inbox.take_yes(approval, answer)
            except Conflict:
                agreed = await self._inbox.look_again(approval)
                if answer.person not in agreed.yeses:
                    return Ending(await self._inbox.get(approval.id), ours=False)
        elif len(agreed.yeses) < wanted:
            raise InvalidArgs(f"{answer.person} said yes already. Somebody else has to say so too")
        if len(agreed.yeses) >= wanted:
            return await self._approve(agreed, answer)
        log.info("One yes of several", extra={"approval": approval.id, "by": answer.person})
        self._inbox.announce(agreed)
        return Ending(agreed)

    async def is_agreed(self, approval: Approval) -> bool:
        """Whether as many said yes as it takes; whoever takes the last yes ends the question a moment later."""
        wanted = approval.decision.count
        return wanted > 1 and len((await self._inbox.look_again(approval)).yeses) >= wanted

    async def finish(self, approval: Approval) -> Ending:
        """End a question that is agreed, in the place of a gateway that took the last yes and is gone."""
        agreed = await self._inbox.look_again(approval)
        return await self._approve(agreed, await self._inbox.read_last_yes(approval))

    async def expire(self, approval: Approval) -> Ending:
        return await self._end(
            approval, State.EXPIRED, Answer(verdict="deny", person=NOBODY, channel="clock")
        )

    async def refuse(self, approval: Approval, why: Forbidden) -> Ending:
        """End a question whose call the rules deny now: no answer could let it run. Its caller hears what it would
        hear if it called now."""
        reason = str((why.details or {}).get("reason", ""))
        rules = Answer(verdict="deny", person=NOBODY, channel=RULES, reason=reason)
        return await self._end(approval, State.DENIED, rules)

    async def withdraw(self, approval: Approval) -> Ending:
        caller = Answer(verdict="deny", person=approval.caller.name, channel=approval.call.surface)
        return await self._end(approval, State.WITHDRAWN, caller)

    async def _end(self, approval: Approval, state: State, answer: Answer) -> Ending:
        now = self._clock.now()
        ended = approval.ended(state, answer, now)
        return await self._resolve(ended, now, keep_answered(ended, outcome_of(ended), now))

    async def _approve(self, approval: Approval, answer: Answer, *also: Statement) -> Ending:
        now = self._clock.now()
        return await self._resolve(approval.ended(State.APPROVED, answer, now), now, *also)

    async def _resolve(self, ended: Approval, now: float, *also: Statement) -> Ending:
        failpoint.reach("before_approve_commit")
        try:
            resolved = await self._inbox.resolve(ended, entries.answered(ended, now), *also)
        except Conflict:
            return Ending(await self._inbox.get(ended.id), ours=False)
        failpoint.reach("after_approve_commit")
        self._metrics.waits.observe(now - ended.asked.at, ended.answered.channel, ended.state)
        said = {"state": str(ended.state), "by": ended.answered.by, "channel": ended.answered.channel}
        log.info("Approval resolved", extra=named_in_log(ended) | said)
        self._inbox.announce(resolved)
        return Ending(resolved)


def named_in_log(approval: Approval) -> dict[str, str]:
    trace = trace_of(approval.call_id, approval.call.trace)
    return {"approval": approval.id, "call": approval.call_id, "trace_id": trace.trace_id}


def keep_answered(approval: Approval, outcome: Outcome, now: float) -> Statement:
    """Keep how an approval ended without its call being run; its tool need not be there any more."""
    shown = entries.text(mask_arguments(approval.arguments, approval.asked.secret))
    return keep(approval.call, approval.asked.wire, approval.signature, shown, outcome, now)


def rebuilt(approval: Approval, tool: Tool) -> Case:
    """The case as the store remembers it."""
    return Case(
        call=approval.call,
        tool=tool,
        signature=approval.signature,
        decision=approval.decision,
        arguments_hash=approval.hashes.arguments,
        definition_hash=approval.hashes.definition,
        facts=approval.asked.facts,
    )

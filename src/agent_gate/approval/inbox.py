"""The inbox: every open question, kept in the store, answered once by compare-and-set.

It writes questions and answers together with the record's row for them, so that the two never disagree; what
happens after an answer is not its business. Where gateways share the store it has the questions of all of them, and
any may answer; who runs the call then is written with the answer.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from agent_gate.approval.rows import (
    OWED,
    SELECT_APPROVALS,
    approval_of,
    insert_approval,
    insert_within,
    resolve_approval,
    taking_over,
)
from agent_gate.approval.sealed import SecretArguments
from agent_gate.approval.yeses import read_last_yes, read_yeses, saying_yes, staying_open
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import State
from agent_gate.core.ports import Clock, end_of
from agent_gate.errors import Forbidden, InvalidArgs, RateLimited
from agent_gate.observe import failpoint
from agent_gate.store.statement import Conflict, Statement, Store
from agent_gate.store.turns import taking_turn
from agent_gate.vault.vault import Vault

log = logging.getLogger("agent_gate.approvals")
QuestionListener = Callable[[Approval], None]
ENDING = re.compile("[0-9a-f]{8,32}")
RECENT = 1000
OTHERS_SECONDS = 2.0
"""How long another gateway has to close its own question, before this one does."""
PAGE = 200


def nobody(_gateway: str) -> bool:
    return False


class Inbox:
    """Open approvals by id, cached from the store, and who wants to hear about them."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        vault: Vault | None = None,
        serves: Callable[[str], bool] = nobody,
    ) -> None:
        """`serves` says whether another gateway is there to run what it asked about."""
        self._store, self._clock, self._serves = store, clock, serves
        self.gateway = store.chain
        self.secrets = SecretArguments(store, vault)
        self._open: dict[str, Approval] = {}
        self._ends: dict[str, float] = {}
        self._writing: dict[str, Approval] = {}
        self._listeners: list[QuestionListener] = []
        self._near: list[QuestionListener] = []

    def subscribe(self, listener: QuestionListener) -> Callable[[], None]:
        """Hear every approval when it is asked and when it is resolved, wherever that was; returns the undo."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def subscribe_here(self, listener: QuestionListener) -> None:
        """Hear only what is asked and resolved on this gateway."""
        self._near.append(listener)

    def open(self) -> list[Approval]:
        """The questions that are kept and wait for an answer."""
        return sorted(self._open.values(), key=lambda approval: approval.asked.at)

    def _all(self) -> Iterator[Approval]:
        """Those and the ones that are being written, whose place is taken already."""
        yield from self._open.values()
        yield from self._writing.values()

    def of_call(self, call_id: str, caller: str) -> Approval | None:
        """The question that this call of this caller waits for."""
        return next((a for a in self._all() if a.call_id == call_id and a.caller.name == caller), None)

    def same(self, caller: str, tool_id: str, arguments_hash: str) -> Approval | None:
        """The open question that asks exactly this for this caller."""
        wanted = (caller, tool_id, arguments_hash)
        return next(
            (a for a in self._all() if (a.caller.name, a.tool_id, a.hashes.arguments) == wanted), None
        )

    async def take_up(self, caller: str, tool_id: str, arguments_hash: str) -> Approval | None:
        """The same question where only the store knows it: its commit was in doubt, or another gateway asked it. It was
        open a moment ago, and may have been answered since."""
        rows = await self._store.read(
            f"{SELECT_APPROVALS} WHERE caller = ? AND tool = ? AND arguments_hash = ? ORDER BY asked_at DESC LIMIT 1",
            (caller, tool_id, arguments_hash),
        )
        if not rows:
            return None
        approval = await self.secrets.fill(approval_of(rows[0]))
        if approval.state is State.PENDING:
            self._show(approval)
        return approval

    def _show(self, approval: Approval) -> None:
        """Have a question that the store knew before we did."""
        if approval.id not in self._open and approval.id not in self._writing:
            self._keep(approval)
            self._tell(self._listeners, approval)

    async def take_news(self, ids: Collection[str] | None) -> list[Approval]:
        """Take over what other gateways asked and answered, of everything where nobody knows of what; the questions that
        are answered now."""
        wanted = [*ids] if ids is not None else [*self._open, *(one.id for one in await self.list_waiting())]
        answered = []
        for start in range(0, len(wanted), PAGE):
            some = wanted[start : start + PAGE]
            marks = ", ".join("?" * len(some))
            for row in await self._store.read(f"{SELECT_APPROVALS} WHERE id IN ({marks})", tuple(some)):
                approval = await self.secrets.fill(approval_of(row))
                if approval.state is State.PENDING:
                    self._show(approval)
                    continue
                if approval.id in self._open:
                    self._drop(approval)
                    self._tell(self._listeners, approval)
                answered.append(approval)
        return answered

    async def list_owed(self) -> list[Approval]:
        """Approved questions whose call was neither dispatched nor given up yet, of all gateways."""
        return [await self.secrets.fill(approval_of(row)) for row in await self._store.read(OWED)]

    async def take_over(self, approval: Approval) -> Approval | None:
        """Have this gateway run what another one had to, which is gone; None where somebody else was first."""
        try:
            await self._store.write(taking_over(approval, self.gateway))
        except Conflict:
            return None
        return replace(approval, gateway=self.gateway)

    def _performer(self, approval: Approval) -> str:
        """Who runs the call: the gateway that asked, which has its caller and its source, while it is there."""
        return approval.gateway if approval.gateway and self._serves(approval.gateway) else self.gateway

    def check_room(self, caller: str, most: int) -> None:
        if most and sum(1 for a in self._all() if a.caller.name == caller) >= most:
            raise full(most)

    async def check_kept_room(self, approval: Approval) -> None:
        """As `check_room`, after the store refused a question: by what it has, where the same is not open."""
        caller, most = approval.caller.name, approval.caller.max_pending
        if not most or not self._store.shared:
            return
        asked = [one for one in await self.list_waiting() if one.caller.name == caller]
        same = any(
            (one.tool_id, one.hashes.arguments) == (approval.tool_id, approval.hashes.arguments)
            for one in asked
        )
        if len(asked) >= most and not same:
            raise full(most)

    async def load(self) -> list[Approval]:
        """Take up what was open when the process ended."""
        await self.secrets.forget_ended()
        asked = [await self._fill(approval) for approval in await self.list_waiting()]
        self._open, self._ends = {}, {}
        for approval in asked:
            self._keep(approval)
        return self.open()

    async def list_waiting(self) -> list[Approval]:
        """The questions that the store has open, as they are shown."""
        rows = await self._store.read(f"{SELECT_APPROVALS} WHERE state = 'pending' ORDER BY asked_at")
        return [approval_of(row) for row in rows]

    def _keep(self, approval: Approval) -> None:
        self._open[approval.id] = approval
        self._ends[approval.id] = end_of(self._clock, approval.asked.at, approval.asked.expires_at)

    def _drop(self, approval: Approval) -> None:
        self._open.pop(approval.id, None)
        self._ends.pop(approval.id, None)

    async def get(self, approval_id: str) -> Approval | None:
        if approval_id in self._open:
            return self._open[approval_id]
        rows = await self._store.read(
            f"{SELECT_APPROVALS} WHERE id = ? OR call = ?", (approval_id, approval_id)
        )
        return await self._fill(approval_of(rows[0])) if rows else None

    async def _fill(self, approval: Approval) -> Approval:
        return await read_yeses(self._store, await self.secrets.fill(approval))

    async def look_again(self, approval: Approval) -> Approval:
        """The question with all who said yes to it by now, also on another gateway."""
        return await read_yeses(self._store, approval)

    async def read_last_yes(self, approval: Approval) -> Answer:
        return await read_last_yes(self._store, approval)

    async def take_yes(self, approval: Approval, answer: Answer) -> Approval:
        """Keep one yes of several; `Conflict` where this person said it before, or the question is not open any more."""
        await self._store.write(staying_open(approval), saying_yes(approval, answer, self._clock.now()))
        agreed = await self.look_again(approval)
        if approval.id in self._open:
            self._open[approval.id] = agreed
        return agreed

    async def find(self, ident: str) -> Approval:
        """The approval of that id, or of the call with that id; the last eight characters of either will do, as people
        type them.

        Ids begin with the time, so what is asked next begins alike; fewer at the end could be hit by chance.
        """
        exact = await self.get(ident)
        if exact is not None:
            return exact
        matches = await self._find_ending(ident) if ENDING.fullmatch(ident) else []
        if len(matches) != 1:
            said = "more than one approval" if matches else "no approval"
            raise InvalidArgs(
                f"There is {said} with the id {ident[:40]}. See `agent-gate approvals list --all`"
            )
        return matches[0]

    async def _find_ending(self, ident: str) -> list[Approval]:
        """Those whose id or call ends so: the open ones, else those of late."""
        waiting = [a for a in self._open.values() if a.id.endswith(ident) or a.call_id.endswith(ident)]
        if waiting:
            return waiting
        recent = f"SELECT id, call FROM approvals ORDER BY asked_at DESC LIMIT {RECENT}"
        rows = await self._store.read(
            f"SELECT id FROM ({recent}) AS recent WHERE id LIKE ? OR call LIKE ?", (f"%{ident}", f"%{ident}")
        )
        found = [await self.get(row[0]) for row in rows]
        return [approval for approval in found if approval is not None]

    async def list_past(
        self, limit: int = 100, before: float | None = None, *, ended: bool = False
    ) -> list[Approval]:
        """Questions as they are shown, newest first; with `ended` only those that no longer wait."""
        only = " AND state <> 'pending'" if ended else ""
        rows = await self._store.read(
            f"{SELECT_APPROVALS} WHERE asked_at < ?{only} ORDER BY asked_at DESC LIMIT ?",
            (before if before is not None else self._clock.now() + 1, limit),
        )
        return [approval_of(row) for row in rows]

    async def put(self, approval: Approval, *also: Statement) -> None:
        """Keep a new question, durable with `also`, and show it; `Conflict` when the same one is open.

        Its place is taken before the write, so that a burst can neither ask twice nor ask too much.
        """
        writing = asyncio.ensure_future(self.secrets.write(approval, [*self._inserting(approval), *also]))
        self._writing[approval.id] = approval
        writing.add_done_callback(lambda done: self._written(approval, done))
        await asyncio.shield(writing)

    def _inserting(self, approval: Approval) -> list[Statement]:
        """On a store of one gateway memory knows how much room there is; else the store says so, one at a time."""
        most = approval.caller.max_pending
        if not most or not self._store.shared:
            return [insert_approval(approval)]
        return [taking_turn(f"questions of {approval.caller.name}"), insert_within(approval, most)]

    def _written(self, approval: Approval, done: "asyncio.Future[list[int]]") -> None:
        """Show a question that is kept, also when its caller left while it was written; forget one that is not."""
        del self._writing[approval.id]
        if done.cancelled() or done.exception() is not None:
            return
        self._keep(approval)
        failpoint.reach("after_pending_commit")
        self.announce(approval)

    def announce(self, approval: Approval) -> None:
        """Tell everybody who listens of what happened here."""
        self._tell([*self._listeners, *self._near], approval)

    def _tell(self, listeners: Iterable[QuestionListener], approval: Approval) -> None:
        """One who fails keeps neither the others nor the call from going on."""
        for listener in list(listeners):
            try:
                listener(approval)
            except Exception:
                log.exception("A listener failed", extra={"approval": approval.id})

    def check_approver(self, approval: Approval, answer: Answer) -> None:
        allowed = approval.decision.approvers
        if answer.verdict == "approve" and answer.person == approval.decision.not_by != "":
            raise Forbidden(
                f"{approval.caller.name} works for {answer.person}, so somebody else has to say yes: "
                f"{approval.decision.where or 'the rule'} says so"
            )
        if allowed and answer.person not in allowed:
            raise Forbidden(
                f"Only {', '.join(allowed)} may answer this: {approval.decision.where or 'the rule'} says so"
            )

    async def resolve(self, ended: Approval, *also: Statement) -> Approval:
        """Move one question out of `pending`, first answer wins; `Conflict` for everybody else."""
        approved = ended.state is State.APPROVED
        resolved = replace(ended, gateway=self._performer(ended) if approved else "")
        unneeded = [] if approved else self.secrets.forgetting(ended)
        try:
            await self._store.write(resolve_approval(resolved), *also, *unneeded)
        except Conflict:
            self._drop(ended)
            raise
        self._drop(ended)
        return resolved

    def due(self) -> list[Approval]:
        """Open questions whose time is over, on whichever clock that is sooner."""
        now, monotonic = self._clock.now(), self._clock.monotonic()

        def is_over(one: Approval) -> bool:
            grace = OTHERS_SECONDS if self._serves(one.gateway) else 0.0
            return one.asked.expires_at + grace <= now or self._ends[one.id] + grace <= monotonic

        return [one for one in self._open.values() if is_over(one)]


def full(most: int) -> RateLimited:
    return RateLimited(f"Too many pending approvals: {most} wait for a person already", retry_after=30)

"""The inbox: every open question, kept in the store, answered once by compare-and-set.

It writes questions and answers together with the record's row for them, so that the two never disagree; what
happens after an answer is not its business.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from agent_gate.approval.rows import SELECT_APPROVALS, approval_of, insert_approval, resolve_approval
from agent_gate.approval.sealed import SecretArguments
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import State
from agent_gate.core.ports import Clock, end_of
from agent_gate.errors import Forbidden, InvalidArgs, RateLimited
from agent_gate.observe import failpoint
from agent_gate.store.statement import Conflict, Statement, Store
from agent_gate.vault.vault import Vault

log = logging.getLogger("agent_gate.approvals")
Listener = Callable[[Approval], None]
SHORT = 8


class Inbox:
    """Open approvals by id, cached from the store, and who wants to hear about them."""

    def __init__(self, store: Store, clock: Clock, vault: Vault | None = None) -> None:
        self._store, self._clock = store, clock
        self.secrets = SecretArguments(store, vault)
        self._open: dict[str, Approval] = {}
        self._ends: dict[str, float] = {}
        self._writing: dict[str, Approval] = {}
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear every approval when it is asked and when it is resolved; returns the undo."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def open(self) -> list[Approval]:
        """The questions that are kept and wait for an answer."""
        return sorted(self._open.values(), key=lambda approval: approval.asked_at)

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
        """The same question where only the store knows it: its commit was in doubt, or another gateway asked it."""
        rows = await self._store.read(
            f"{SELECT_APPROVALS} WHERE state = 'pending' AND caller = ? AND tool = ? AND arguments_hash = ?",
            (caller, tool_id, arguments_hash),
        )
        if not rows:
            return None
        approval = await self.secrets.filled(approval_of(rows[0]))
        if approval.id not in self._open:
            self._keep(approval)
            self.announce(approval)
        return approval

    def check_room(self, caller: str, most: int) -> None:
        if most and sum(1 for a in self._all() if a.caller.name == caller) >= most:
            raise RateLimited(f"Too many pending approvals: {most} wait for a person already", retry_after=30)

    async def load(self) -> list[Approval]:
        """Take up what was open when the process ended."""
        await self.secrets.forget_ended()
        asked = [await self.secrets.filled(approval) for approval in await self.waiting()]
        self._open, self._ends = {}, {}
        for approval in asked:
            self._keep(approval)
        return self.open()

    async def waiting(self) -> list[Approval]:
        """The questions that the store has open, as they are shown."""
        rows = await self._store.read(f"{SELECT_APPROVALS} WHERE state = 'pending' ORDER BY asked_at")
        return [approval_of(row) for row in rows]

    def _keep(self, approval: Approval) -> None:
        self._open[approval.id] = approval
        self._ends[approval.id] = end_of(self._clock, approval.asked_at, approval.expires_at)

    def _drop(self, approval: Approval) -> None:
        self._open.pop(approval.id, None)
        self._ends.pop(approval.id, None)

    async def get(self, approval_id: str) -> Approval | None:
        if approval_id in self._open:
            return self._open[approval_id]
        rows = await self._store.read(
            f"{SELECT_APPROVALS} WHERE id = ? OR call = ?", (approval_id, approval_id)
        )
        return await self.secrets.filled(approval_of(rows[0])) if rows else None

    async def find(self, ident: str) -> Approval:
        """The approval of that id; of an open one its last eight characters will do, as people type it.

        Ids begin with the time, so what is asked next begins alike; fewer at the end could be hit by chance.
        """
        matches = [a for a in self._open.values() if len(ident) >= SHORT and a.id.endswith(ident)]
        if len(matches) == 1:
            return matches[0]
        exact = await self.get(ident) if not matches else None
        if exact is None:
            said = "more than one open approval" if matches else "no approval"
            raise InvalidArgs(f"There is {said} with the id {ident[:40]}. See `agent-gate approvals list`")
        return exact

    async def history(
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
        writing = asyncio.ensure_future(self.secrets.write(approval, [insert_approval(approval), *also]))
        self._writing[approval.id] = approval
        writing.add_done_callback(lambda done: self._written(approval, done))
        await asyncio.shield(writing)

    def _written(self, approval: Approval, done: "asyncio.Future[list[int]]") -> None:
        """Show a question that is kept, also when its caller left while it was written; forget one that is not."""
        del self._writing[approval.id]
        if done.cancelled() or done.exception() is not None:
            return
        self._keep(approval)
        failpoint.reach("after_pending_commit")
        self.announce(approval)

    def announce(self, approval: Approval) -> None:
        """Tell everybody who listens; one who fails keeps neither the others nor the call from going on."""
        for listener in list(self._listeners):
            try:
                listener(approval)
            except Exception:
                log.exception("A listener failed", extra={"approval": approval.id})

    def check_approver(self, approval: Approval, answer: Answer) -> None:
        allowed = approval.decision.approvers
        if allowed and answer.person not in allowed:
            raise Forbidden(
                f"Only {', '.join(allowed)} may answer this: {approval.decision.where or 'the rule'} says so"
            )

    async def resolve(
        self, approval: Approval, state: State, answer: Answer, also: Iterable[Statement]
    ) -> Approval:
        """Move one question out of `pending`, first answer wins; `Conflict` for everybody else."""
        resolved = replace(
            approval,
            state=state,
            answered_at=self._clock.now(),
            answered_by=answer.person,
            channel=answer.channel,
            reason=answer.reason,
            lifetime=answer.lifetime,
        )
        unneeded = [] if state is State.APPROVED else self.secrets.forgetting(approval)
        try:
            await self._store.write(resolve_approval(resolved), *also, *unneeded)
        except Conflict:
            self._drop(approval)
            raise
        self._drop(approval)
        return resolved

    def due(self) -> list[Approval]:
        """Open questions whose time is over, on whichever clock that is sooner."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        return [a for a in self._open.values() if a.expires_at <= now or self._ends[a.id] <= monotonic]

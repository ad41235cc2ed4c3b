"""Grants: remembered answers. They turn *ask* into *allow*, never a *deny*; a changed definition voids them."""

import math
from collections.abc import Callable, Mapping

from agent_gate.approval.rows import SELECT_GRANTS, grant_of, insert_grant
from agent_gate.core.approval import Approval, Grant, Lifetime
from agent_gate.core.call import new_id
from agent_gate.core.ports import Clock, end_of
from agent_gate.store.statement import Statement, Store
from agent_gate.store.steady import read_steady

LIVE = f"{SELECT_GRANTS} WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
HOUR = 3600.0
LONGEST_SESSION = 24 * HOUR
SECONDS: Mapping[str, float] = {"session": LONGEST_SESSION, "hour": HOUR}
GrantKey = tuple[str, str, str]
HeldGrant = tuple[Grant, float]
"""A grant, and when it ends on the monotonic clock."""


def describe(approval: Approval, lifetime: Lifetime) -> str:
    """What an answer with this lifetime will allow from now on, in words that stand below the question."""
    again = f"{approval.caller.name} may repeat exactly this call unasked"
    spans: Mapping[str, str] = {
        "once": "Only this call. The next one is asked about again.",
        "session": f"{again} until this session ends, for a day at most.",
        "hour": f"{again} for one hour.",
        "always": f"{again} until you revoke it.",
    }
    return spans[lifetime]


class Grants:
    """The live grants, cached from the store; every change is written before it counts."""

    def __init__(
        self, store: Store, clock: Clock, still_answers: Callable[[str], bool] = lambda _person: True
    ) -> None:
        """`still_answers` says whether a person's word counts, so that a yes does not outlast who gave it."""
        self._store, self._clock, self._still_answers = store, clock, still_answers
        self._live: dict[GrantKey, list[HeldGrant]] = {}
        self._changes = 0

    async def load(self) -> None:
        """Have what the store has."""
        rows = await read_steady(lambda: self._changes, lambda: self._store.read(LIVE, (self._clock.now(),)))
        self._live = {}
        for row in rows:
            self.remember(grant_of(row))

    def remember(self, grant: Grant) -> None:
        """Let `grant` count from now on; its row is durable already."""
        self._changes += 1
        ends = (
            math.inf if grant.expires_at is None else end_of(self._clock, grant.created_at, grant.expires_at)
        )
        self._live.setdefault((grant.caller, grant.tool_id, grant.arguments_hash), []).append((grant, ends))

    def find(
        self,
        caller: str,
        tool_id: str,
        arguments_hash: str,
        definition_hash: str,
        session: str | None,
        approvers: tuple[str, ...] = (),
    ) -> Grant | None:
        """The grant that covers this call, if there is one; where a rule names `approvers`, one of theirs."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        for grant, ends in self._live.get((caller, tool_id, arguments_hash), ()):
            if grant.definition_hash != definition_hash or ends <= monotonic:
                continue
            if grant.expires_at is not None and grant.expires_at <= now:
                continue
            if (approvers and grant.created_by not in approvers) or not self._still_answers(grant.created_by):
                continue
            if grant.session is None or grant.session == session:
                return grant
        return None

    def note_use(self, grant_id: str) -> None:
        if self._store.crowded:
            return
        self._store.post(Statement("UPDATE grants SET used = used + 1 WHERE id = ?", (grant_id,)))

    def from_answer(
        self, approval: Approval, lifetime: Lifetime, person: str
    ) -> tuple[Grant, Statement] | None:
        """The grant that a yes with this lifetime makes; none for *once*, none for a session that is not there."""
        if lifetime == "once" or (lifetime == "session" and approval.session is None):
            return None
        now = self._clock.now()
        grant = Grant(
            id=new_id(),
            caller=approval.caller.name,
            tool_id=approval.tool_id,
            signature=approval.signature,
            arguments_hash=approval.hashes.arguments,
            definition_hash=approval.hashes.definition,
            created_at=now,
            expires_at=None if lifetime == "always" else now + SECONDS[lifetime],
            created_by=person,
            session=approval.session if lifetime == "session" else None,
            approval_id=approval.id,
        )
        return grant, insert_grant(grant)

    async def list(self) -> list[Grant]:
        """What is live now, as the store has it."""
        now = self._clock.now()
        rows = await self._store.read(
            f"{LIVE} ORDER BY created_at",
            (now,),
        )
        return [grant for grant in map(grant_of, rows) if self._still_answers(grant.created_by)]

    async def revoke(self, grant_id: str) -> bool:
        """Take a grant back; false when there is no live grant of that id."""
        statement = Statement(
            "UPDATE grants SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
            (self._clock.now(), grant_id),
        )
        [changed] = await self._store.write(statement)
        self._changes += 1
        for held in self._live.values():
            held[:] = [(grant, ends) for grant, ends in held if grant.id != grant_id]
        return changed == 1

    def ending(self, caller: str) -> Statement:
        """Takes back every grant of a caller: whoever comes next under its name is somebody else."""
        return Statement(
            "UPDATE grants SET revoked_at = ? WHERE caller = ? AND revoked_at IS NULL",
            (self._clock.now(), caller),
        )

    def ending_all(self) -> Statement:
        """Takes back every grant there is; to be written before they are loaded."""
        sql = "UPDATE grants SET revoked_at = ? WHERE revoked_at IS NULL"
        return Statement(sql, (self._clock.now(),))

    def forget(self, caller: str) -> None:
        """Let no grant of a caller count from now on; that is durable already."""
        self._changes += 1
        self._live = {key: held for key, held in self._live.items() if key[0] != caller}

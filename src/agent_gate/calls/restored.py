"""A store put back from a copy: the gateway it was taken from may have gone on, so nothing that was under way runs.

It is known by the mark that `agent-gate backup` leaves in the copy, or because it ends before the row that was noted
outside the database.
"""

import logging
from collections.abc import Callable, Sequence

from agent_gate.approval.inbox import Inbox
from agent_gate.approval.rows import giving_up, resolve_approval
from agent_gate.audit import read_unfinished
from agent_gate.calls import entries
from agent_gate.calls.asking import keep_answered
from agent_gate.calls.perform import MAY_HAVE_RUN
from agent_gate.calls.recovery import lose, stories
from agent_gate.core.approval import Answer, Approval
from agent_gate.core.call import NOBODY, Outcome, State
from agent_gate.core.ports import Clock
from agent_gate.errors import OutcomeUnknown
from agent_gate.store.copied import UNMARK, is_copy
from agent_gate.store.statement import Head, Statement, Store

log = logging.getLogger("agent_gate.recovery")
REASON = "The store was restored from a copy, and this question may have been answered since"
RESTORED = OutcomeUnknown(
    f"The gateway was restored from a copy, and what became of this call since is not known. {MAY_HAVE_RUN}"
)
SHORT_OF = "short of"
NOTE_SHORT = (
    "INSERT INTO kv (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)


async def is_older(store: Store, noted: Head | None) -> bool:
    """Whether this is an older state than the last one there was, and nobody has seen to it yet."""
    if await is_copy(store):
        return True
    if noted is None or noted.seq <= store.head.seq:
        return False
    return await store.read("SELECT value FROM kv WHERE name = ?", (SHORT_OF,)) != [(noted.hash,)]


async def end_what_was_under_way(
    store: Store,
    inbox: Inbox,
    clock: Clock,
    noted: Head | None,
    also: Sequence[Statement],
    is_alive: Callable[[str], bool],
) -> None:
    """Close every question and every call of an older store, together with `also`, or leave it as it is.

    What gateways had to run that are gone is closed too: nobody may take it over.
    """
    now = clock.now()
    asked = await inbox.list_waiting()
    owing = {approval.gateway for approval in await inbox.list_owed()}
    gone = [store.chain, *sorted(gateway for gateway in owing if not is_alive(gateway))]
    answered = [
        story
        for gateway in gone
        for story in stories(await read_unfinished(store, gateway))
        if story[-1].state == State.APPROVED
    ]
    ends = [statement for approval in asked for statement in withdrawn(approval, now)]
    ends += [statement for story in answered for statement in lose(story, RESTORED, now)]
    ends += map(giving_up, gone)
    seen = [Statement(NOTE_SHORT, (SHORT_OF, noted.hash))] if noted is not None else []
    await store.write(*ends, *also, *seen, UNMARK)
    log.warning(
        "The store was restored from an older copy. What waited in it was withdrawn, remembered answers and logins "
        "ended. Tokens that were revoked since the copy was made are valid again: see `agent-gate agents` and "
        "`agent-gate operators`",
        extra={"questions": len(asked), "approved": len(answered)},
    )


def withdrawn(approval: Approval, now: float) -> list[Statement]:
    """Ends a question that may have been answered, and its call run, where the copy was taken from."""
    nobody = Answer(verdict="deny", person=NOBODY, channel="restore", reason=REASON)
    ended = approval.ended(State.WITHDRAWN, nobody, now)
    outcome = Outcome(call_id=approval.call_id, state=State.WITHDRAWN, error=RESTORED)
    return [resolve_approval(ended), entries.answered(ended, now), keep_answered(ended, outcome, now)]

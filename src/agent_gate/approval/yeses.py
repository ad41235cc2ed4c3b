"""Who said yes already to a question that needs more than one person: a row each, and each person once."""

from dataclasses import replace

from agent_gate.core.approval import Answer, Approval
from agent_gate.store.statement import Statement, Store

STILL_OPEN = "UPDATE approvals SET state = 'pending' WHERE id = ? AND state = 'pending'"
INSERT = "INSERT INTO yeses (approval, person, channel, at) VALUES (?, ?, ?, ?)"
READ_LAST = "SELECT person, channel FROM yeses WHERE approval = ? ORDER BY at DESC, person DESC LIMIT 1"
READ = "SELECT person FROM yeses WHERE approval = ? ORDER BY at, person"


def saying_yes(approval: Approval, answer: Answer, now: float) -> Statement:
    """The second of one person is a `Conflict`."""
    return Statement(INSERT, (approval.id, answer.person, answer.channel, now))


def staying_open(approval: Approval) -> Statement:
    """A yes counts only while the question is open."""
    return Statement(STILL_OPEN, (approval.id,), expect=1)


async def read_last_yes(store: Store, approval: Approval) -> Answer:
    """What the last person said who said yes; there is one."""
    [(person, channel)] = await store.read(READ_LAST, (approval.id,))
    return Answer(verdict="approve", person=str(person), channel=str(channel))


async def read_yeses(store: Store, approval: Approval) -> Approval:
    """The question with all who said yes to it."""
    if approval.decision.count <= 1:
        return approval
    rows = await store.read(READ, (approval.id,))
    return replace(approval, yeses=tuple(str(row[0]) for row in rows))

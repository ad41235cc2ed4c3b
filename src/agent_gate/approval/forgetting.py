"""Questions whose calls are no longer on record are forgotten with them."""

from agent_gate.store.statement import Statement, Store

AT_ONCE = 500
GONE = f"""DELETE FROM approvals WHERE id IN (SELECT id FROM approvals WHERE state <> 'pending' AND asked_at < ?
  AND NOT EXISTS (SELECT 1 FROM record WHERE record.call = approvals.call) ORDER BY asked_at LIMIT {AT_ONCE})"""


async def forget_questions(store: Store, before: float) -> int:
    """Forget the answered questions from before that moment whose calls were cut from the record; how many."""
    gone = 0
    while (counts := await store.write(Statement(GONE, (before,))))[0]:
        gone += counts[0]
    return gone

"""Results for people to look at: kept as `results.keep` says, masked, cut, and removed when their time is over.

They are apart from the results kept for callers who are away: nobody but an operator reads them.
"""

from dataclasses import dataclass
from typing import Literal

from agent_gate.core.call import Case, Outcome, State
from agent_gate.observe.redact import Redactor, secret_values
from agent_gate.store.statement import Statement, Store

Keep = Literal["none", "failed", "all"]
MOST_CHARACTERS = 64 * 1024
DAY = 86_400.0
INSERT = (
    "INSERT INTO seen_results (call, body, kind, size, expires_at) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (call) DO NOTHING"
)
READ = "SELECT body, kind, size, expires_at FROM seen_results WHERE call = ? AND expires_at > ?"


@dataclass(frozen=True, slots=True)
class SeenResult:
    """What a call answered: its beginning, masked. `size` is that of the whole in bytes."""

    text: str
    kind: str
    size: int
    kept_until: float

    @property
    def cut(self) -> bool:
        return len(self.text) >= MOST_CHARACTERS


def keep_seen(case: Case, outcome: Outcome, redactor: Redactor, until: float) -> Statement | None:
    """The statement that keeps what a call answered; None where it answered nothing."""
    result = outcome.result
    if result is None:
        return None
    text = result.body[: 4 * MOST_CHARACTERS].decode("utf-8", "replace")
    secret = case.tool.definition.secret
    if secret:
        text = Redactor(secret_values(case.call.arguments, secret)).known(text)
    masked = redactor.text(text)[:MOST_CHARACTERS]
    return Statement(INSERT, (case.call.id, masked, result.kind, len(result.body), until))


def is_kept(keep: Keep, state: State) -> bool:
    return keep == "all" or (keep == "failed" and state is not State.COMPLETED)


async def read_seen(store: Store, call_id: str, now: float) -> SeenResult | None:
    rows = await store.read(READ, (call_id, now))
    return SeenResult(*rows[0]) if rows else None


async def purge_seen(store: Store, now: float) -> None:
    await store.write(Statement("DELETE FROM seen_results WHERE expires_at <= ?", (now,)))

"""What the writer needs from a database: `Engine`, and `Fault`, the reason why nothing can be written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_gate.store.statement import Head, Param, Record


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the store refuses writes. A broken store stays so until the gateway is started again."""

    reason: str
    broken: bool = False


class Engine(Protocol):
    """One database. The writer's thread calls everything but `read`, which other threads call."""

    errors: tuple[type[Exception], ...]
    """What the driver raises."""

    file: Path | None
    """What another process may read, where it is a file."""

    commits_alone: bool
    """Whether one statement outside of a transaction is a durable transaction of its own."""

    def open(self) -> None:
        """Connect, take the lock and bring the schema up to date."""
        ...

    def head(self, chain: str) -> Head: ...
    def begin(self) -> bool:
        """Start a transaction. True says that what was known must be read again: the connection is new, or the last
        commit is in doubt."""
        ...

    def commit(self) -> None: ...

    @property
    def in_doubt(self) -> bool:
        """Whether nobody knows yet if the last commit took effect."""
        ...

    def landed(self) -> bool:
        """Whether a commit that was in doubt took effect after all; ends the doubt."""
        ...

    def rollback(self) -> None:
        """End the transaction if there is one; never raises."""
        ...

    def savepoint(self) -> None: ...
    def release(self) -> None: ...
    def undo(self) -> None:
        """Roll back to the savepoint and drop it."""
        ...

    def execute(self, sql: str, params: tuple[Param, ...]) -> int:
        """Run one statement and return its row count."""
        ...

    def fault(self, error: Exception) -> Fault | None:
        """What is wrong with the store itself; None where the statement is to blame."""
        ...

    def conflict(self, error: Exception) -> bool:
        """Whether a unique key was violated."""
        ...

    def upkeep(self) -> None:
        """Called after each commit, when the waiters have been told."""
        ...

    def rewrite(self) -> None:
        """Write everything anew, without what was deleted; another thread calls this while nothing is written."""
        ...

    def read(self, sql: str, params: tuple[Param, ...]) -> list[Record]: ...
    def close(self) -> None: ...

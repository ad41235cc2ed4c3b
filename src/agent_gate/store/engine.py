"""What the writer needs from a database: `Engine`, and `Fault`, the reason why nothing can be written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent_gate.store.statement import Head, Param, Record

Run = tuple[str, tuple[Param, ...]]
"""A statement and its parameters."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the store refuses writes. A broken store stays so until the gateway is started again."""

    reason: str
    broken: bool = False


class Engine(Protocol):
    """One database. The writer's thread calls everything but `read`, which other threads call."""

    name: str
    ahead: int
    """How many migrations the database may be ahead of this program."""

    now: str
    """The database's clock as an expression in SQL: seconds since 1970."""

    shared: bool
    """Whether several gateways may write to it at a time."""

    errors: tuple[type[Exception], ...]
    """What the driver raises."""

    file: Path | None
    """What another process may read, where it is a file."""

    alone: int
    """How many statements can be one durable transaction without being told to begin and commit."""

    def open(self) -> None:
        """Connect, take the lock and bring the schema up to date."""
        ...

    def head(self, chain: str) -> Head: ...
    def begin(self) -> bool:
        """Start a transaction. True says that what was known must be read again: the connection is new, or the last
        commit is in doubt."""
        ...

    def commit(self) -> None: ...

    def stands_alone(self, *, chained: bool) -> bool:
        """Whether rows may be written by `commit_alone` now."""
        ...

    def commit_alone(self, statements: Sequence[Run], head: Head) -> bool:
        """Run at most `alone` statements as one durable transaction that ends the chain with `head`.

        False says that nothing was written because the connection was gone; there is a new one.
        """
        ...

    @property
    def in_doubt(self) -> bool:
        """Whether nobody knows yet if the last commit took effect."""
        ...

    def settle_doubt(self) -> bool:
        """Whether a commit that was in doubt took effect after all; ends the doubt."""
        ...

    def rollback(self) -> None:
        """End the transaction if there is one; never raises."""
        ...

    def set_savepoint(self) -> None: ...
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

    def collided(self, error: Exception) -> bool:
        """Whether the transaction stood in another gateway's way and is worth another try."""
        ...

    async def hear(self, wake: Callable[[], None]) -> None:
        """Call `wake` now and whenever another gateway changed something, until the connection is lost."""
        ...

    def maintain(self) -> None:
        """Called after each commit, when the waiters have been told."""
        ...

    def rewrite(self) -> None:
        """Write everything anew, without what was deleted; another thread calls this while nothing is written."""
        ...

    def read(self, sql: str, params: tuple[Param, ...]) -> list[Record]: ...
    def close(self) -> None: ...

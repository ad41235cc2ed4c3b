"""The words of the store: `Statement`, `StoreSettings`, `Conflict`, `InDoubt` and the `Store` Protocol."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from agent_gate.errors import DependencyUnavailable

Param = str | int | float | bytes | None
Record = tuple[Any, ...]


# A Struct because one is made per call on the event loop, at a fifth of a dataclass's price.
class Statement(msgspec.Struct, frozen=True, gc=False):
    """One SQL statement with `?` placeholders, in the subset that SQLite and PostgreSQL both take.

    `expect` is the required row count: a miss rolls the whole unit back and raises `Conflict`.
    `chained` appends to the writer's hash chain: leave off the last three parameters, the writer fills
    these placeholders with chain, seq and hash.
    """

    sql: str
    params: tuple[Param, ...] = ()
    expect: int | None = None
    chained: bool = False


class Head(NamedTuple):
    """The last link of a hash chain. `hash` is the hexadecimal digest; seq 0 is the empty chain."""

    seq: int
    hash: str


class InDoubt(DependencyUnavailable):
    """The store could not be asked for too long whether what was to be written is there: it may be, or not."""


class Conflict(Exception):
    """Somebody else was first: a unique key is taken, or a statement touched other than `expect` rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """Where the store is: a file for `sqlite`, a URL for `postgres`. `chain` is the gateway's id."""

    type: Literal["sqlite", "postgres"] = "sqlite"
    path: Path | None = None
    url: str | None = None
    chain: str = "home"


RowListener = Callable[[Head, Sequence[tuple[Param, ...]]], None]


class Store(Protocol):
    """Durability. All methods are called on the event loop."""

    @property
    def chain(self) -> str: ...

    @property
    def shared(self) -> bool:
        """Whether other gateways may work on it at the same time."""
        ...

    @property
    def now(self) -> str:
        """The database's clock as an expression in SQL: what leases end by, whatever clock each gateway has."""
        ...

    @property
    def file(self) -> Path | None:
        """The SQLite file that another process of ours may read beside this one, where there is one."""
        ...

    @property
    def head(self) -> Head:
        """The last durable link of this store's own chain."""
        ...

    @property
    def fault(self) -> str | None:
        """Why writes are refused; None when all is well."""
        ...

    @property
    def healthy(self) -> bool: ...

    @property
    def crowded(self) -> bool:
        """Whether nobody should post more without need: too much waits to be written, or nothing can be."""
        ...

    def write(self, *statements: Statement) -> Awaitable[list[int]]:
        """One atomic unit, queued at once; the row counts when it is durable.

        Raises `Conflict`, or `DependencyUnavailable` where nothing was written. Where the answer to a commit was lost
        it returns when the database can be asked again.
        """
        ...

    def post(self, *statements: Statement) -> None:
        """One atomic unit that rides on the next commit, at the latest some 50 ms later.

        It is kept and tried again while the store is at fault.
        """
        ...

    async def read(self, sql: str, params: tuple[Param, ...] = ()) -> list[Record]:
        """The rows of a query that sees everything committed."""
        ...

    async def flush(self) -> None:
        """Return when everything written or posted so far is durable."""
        ...

    async def rewrite(self) -> None:
        """Leave nothing on disk of what was deleted or replaced; where there is no room for that, say so."""
        ...

    def hurry(self) -> None:
        """From now on refuse what is in doubt while the database is away: nobody can wait for it any more."""
        ...

    async def close(self) -> None: ...

    async def hear(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there may be a notice of another gateway, until cancelled; returns where there is none."""
        ...

    def watch(self, listener: RowListener) -> None:
        """Call `listener` after each commit, on the writer's thread, with the new head and the rows it added to
        the chain."""
        ...

"""What a kind of source is made of: the port that it fills, and the toolbox that it is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from agent_gate.config.kinds import Kind, kinds
from agent_gate.config.settings import Settings
from agent_gate.core.call import Result
from agent_gate.core.credentials import Credentials, Identity
from agent_gate.core.ports import Announce, Clock, Job, Memory, Plan, Plans
from agent_gate.core.tool import Definition
from agent_gate.net.pool import Pool
from agent_gate.sources.access import Access, FixedCredentials, Learn


class OtherGateways(Protocol):
    """The gateways on this store, for a source that one of them runs at a time, or whose call waits on one of them."""

    here: str
    """This gateway."""

    async def take(self, key: str) -> bool:
        """Whether this gateway is the one that runs the source of that key now."""
        ...

    async def read_listing(self, key: str) -> tuple[Sequence[Definition] | None, str]:
        """The tools as the one that runs the source listed them, None where it did not yet; and what the source says of
        itself."""
        ...

    async def ask(self, key: str, job: Job, of: str = "") -> Result:
        """Have the one that runs the source do it, once; or the gateway `of`, and no other."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """What every source is made with; it never sees the rest of the program.

    `credentials` is how a source proves who it is, `learn` how the gateway hears of a secret that it must not show,
    `plans` where a kind brings sources that no file names, and takes them away again, `lender` the socket of the process
    that holds the programs of stdio servers for several workers, `others` the gateways that share the store, if any.
    """

    pool: Pool
    announce: Announce
    plans: Plans
    memory: Memory
    clock: Clock
    learn: Learn
    credentials: Callable[[Identity], Credentials] = FixedCredentials
    max_bytes: int = 64 << 20
    lender: Path | None = None
    others: OtherGateways | None = None

    def access(self, who: Identity, *, masks: bool = True) -> Access:
        """The credentials of one source, known to the redactor as soon as they are."""
        return Access(self.credentials(who), self.learn, masks=masks)


class SourceKind(Kind, Protocol):
    """One kind of source, found through the entry points of the group `agent_gate.sources`."""

    def make(self, settings: Settings, toolbox: Toolbox) -> Sequence[Plan]:
        """The sources of this kind that the configuration asks for."""
        ...


def source_kinds() -> list[SourceKind]:
    """Every kind that is installed."""
    return [cast("SourceKind", kind) for kind in kinds()]

"""What a kind of source is made of: the port that it fills, and the toolbox that it is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from agent_gate.config.kinds import Kind, kinds
from agent_gate.config.settings import Settings
from agent_gate.core.credentials import Credentials, Identity
from agent_gate.core.ports import Announce, Clock, Memory, Plan, Plans
from agent_gate.net.pool import Pool
from agent_gate.sources.access import Access, FixedCredentials, Learn


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """What every source is made with; it never sees the rest of the program.

    `credentials` is how a source proves who it is, `learn` how the gateway hears of a secret that it must not show,
    `plans` where a kind brings sources that no file names, and takes them away again.
    """

    pool: Pool
    announce: Announce
    plans: Plans
    memory: Memory
    clock: Clock
    learn: Learn
    credentials: Callable[[Identity], Credentials] = FixedCredentials
    max_bytes: int = 64 << 20

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

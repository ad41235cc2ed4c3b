"""What a signal is: one reason to rank a tool higher, told apart from all the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from agent_gate.discovery.document import Document


@dataclass(frozen=True, slots=True)
class RankedRequest:
    """A request as signals see it: the tools by their place in the index, and what the words alone found."""

    query: str
    documents: Sequence[Document]
    found: Mapping[int, float]
    """How well the words fit, by place; the best is 1, and what shares no word is absent."""
    cosines: Sequence[float] = ()
    """How near the encoder, where there is one, places each tool to the request."""
    names: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The tools that a server's or a product's name stands for."""

    def first(self, most: int) -> list[int]:
        """The places that the words found first."""
        return nlargest(most, self.found, key=self.found.__getitem__)


def vouch_never(_asked: RankedRequest) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Signal:
    """`rate` says how much speaks for tools, from 0 to 1 by their place; `weight` is what 1 is worth beside the words.

    Tools that it does not name get nothing from it. Naming tools that the words did not find is finding them.
    Where the words say too little, `vouch` says whether something is there that serves the request all the same.
    """

    name: str
    weight: float
    rate: Callable[[RankedRequest], Mapping[int, float]]
    vouch: Callable[[RankedRequest], bool] = vouch_never

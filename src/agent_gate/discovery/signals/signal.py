"""What a signal is: one reason to rank a tool higher, told apart from all the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agent_gate.discovery.document import Document
from agent_gate.discovery.semantic import Space


@dataclass(frozen=True, slots=True)
class RankedRequest:
    """A request as signals see it: the tools by their place in the index, and what the words alone found."""

    query: str
    documents: Sequence[Document]
    found: Mapping[int, float]
    """How well the words fit, by place; the best is 1, and what shares no word is absent."""
    space: Space | None = None
    """The tools placed by the encoder, where there is one."""


@dataclass(frozen=True, slots=True)
class Signal:
    """`rate` says how much speaks for tools, from 0 to 1 by their place; `weight` is what 1 is worth beside the words.

    Tools that it does not name get nothing from it. Naming tools that the words did not find is finding them.
    """

    name: str
    weight: float
    rate: Callable[[RankedRequest], Mapping[int, float]]

"""`BrowserTool`: a tool of the browser in one place: what it takes, what it is about, and what it does."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_gate.core.tool import Definition
from agent_gate.core.traits import Traits

if TYPE_CHECKING:
    from agent_gate.sources.browser.act import Act, Block
    from agent_gate.sources.browser.browsing import Browsing

READS = Traits(read_only=True, open_world=True, trusted=True)
ACTS = Traits(open_world=True, trusted=True)
FILES_BUDGET = 4_000
"""Tokens of a file that an agent gets with the answer; what is larger it gets as a handle."""
REF = {"type": "string", "maxLength": 32, "description": "Reference from the snapshot, such as e12"}
ELEMENT = {"type": "string", "maxLength": 200, "description": "What you take it for; only a note"}

FactsOf = Callable[["Browsing | None", Mapping[str, Any]], dict[str, str]]
Perform = Callable[["Act"], Awaitable[Sequence["Block"]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserTool:
    """`facts` is given what is open, which is nothing before the first page."""

    definition: Definition
    facts: FactsOf
    perform: Perform

    @property
    def name(self) -> str:
        return self.definition.name


def define(
    name: str,
    description: str,
    properties: Mapping[str, Any] | None = None,
    *,
    template: str,
    required: Sequence[str] = (),
    traits: Traits = ACTS,
    ask: str = "",
    consequences: Sequence[str] = (),
    kept: bool = False,
    facts: FactsOf,
    perform: Perform,
) -> BrowserTool:
    schema = {
        "type": "object",
        "properties": dict(properties or {}),
        "required": list(required),
        "additionalProperties": False,
    }
    definition = Definition(
        name=f"browser_{name}",
        description=description,
        input_schema=schema,
        traits=traits,
        flat=True,
        template=template,
        ask=ask,
        consequences=frozenset(consequences),
        budget=FILES_BUDGET if kept else None,
        kept=kept,
    )
    return BrowserTool(definition=definition, facts=facts, perform=perform)

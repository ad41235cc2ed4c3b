"""What a caller sees of the catalog: its namespaces, less what policy denies it altogether."""

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Generic, TypeVar

from agent_gate.core.call import Caller
from agent_gate.core.catalog import Shelf, unknown_tool
from agent_gate.core.tool import Tool
from agent_gate.errors import ToolNotFound
from agent_gate.policy.decide import Policy

Made = TypeVar("Made")


def check_sees(caller: Caller, tool: Tool) -> None:
    """No rule is asked about what a caller does not see."""
    if not caller.sees(tool.namespace):
        raise ToolNotFound(
            f"{caller.name} does not see {tool.namespace}, so its call would be answered with "
            f"“Unknown tool”. See `namespaces` of this agent"
        )


class MadeFor(Generic[Made]):
    """What was made for each caller, and in which form, from the tools it sees; out of date once it sees others."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Hashable], tuple[Sequence[Tool], Made]] = {}

    def get(self, name: str, tools: Sequence[Tool], form: Hashable = None) -> Made | None:
        known = self._made.get((name, form))
        return known[1] if known is not None and known[0] is tools else None

    def outdated(self, name: str) -> Made | None:
        """What was made last, whatever the caller sees now."""
        known = self._made.get((name, None))
        return known[1] if known is not None else None

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self._made}

    def put(self, name: str, tools: Sequence[Tool], made: Made, form: Hashable = None) -> Made:
        self._made[name, form] = (tools, made)
        return made

    def keep(self, names: Collection[str]) -> None:
        """Forget what was made for callers of other names."""
        self._made = {key: known for key, known in self._made.items() if key[0] in names}


class View:
    """The visible tools per caller, worked out once per catalog and policy."""

    def __init__(self, shelf: Shelf, rules: Callable[[], Policy]) -> None:
        self._shelf, self._rules = shelf, rules
        self._seen: dict[Caller, tuple[int, Policy, tuple[Tool, ...]]] = {}

    def tools(self, caller: Caller) -> tuple[Tool, ...]:
        """The same tuple as long as nothing changed, so that what is made from it can be kept."""
        catalog, rules = self._shelf.catalog, self._rules()
        known = self._seen.get(caller)
        if known is not None and known[0] == catalog.generation and known[1] is rules:
            return known[2]
        tools = tuple(
            tool
            for tool in catalog.tools
            if caller.sees(tool.namespace)
            and not rules.hides(tool, caller.name, caller.person, caller.groups)
        )
        if (
            known is not None
            and known[1] is rules
            and len(known[2]) == len(tools)
            and all(a is b for a, b in zip(known[2], tools, strict=True))
        ):
            tools = known[2]
        self._seen[caller] = (catalog.generation, rules, tools)
        return tools

    def keep(self, callers: Collection[Caller]) -> None:
        """Forget what everybody else saw."""
        self._seen = {caller: seen for caller, seen in self._seen.items() if caller in callers}

    def find(self, caller: Caller, name: str) -> Tool | None:
        """The visible tool of that name."""
        tool = self._shelf.catalog.names.get(name)
        if tool is None or not caller.sees(tool.namespace):
            return None
        return None if self._rules().hides(tool, caller.name, caller.person, caller.groups) else tool

    def unknown(self, caller: Caller, name: str) -> ToolNotFound:
        """What a caller is told that finds nothing under that name."""
        renewed = self._shelf.catalog.renewed(name)
        seen = renewed is not None and self.find(caller, renewed.id) is not None
        return unknown_tool(name, renewed if seen else None)

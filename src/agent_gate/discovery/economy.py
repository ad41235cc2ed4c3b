"""What each mode costs in tokens for a catalog, and which one a caller should use.

Pure functions over tools; the command line prints them. Counts are exact for the JSON that a surface lists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from agent_gate.core.call import Mode
from agent_gate.core.tool import Tool
from agent_gate.discovery.browse import TOP_K
from agent_gate.discovery.cards import Deck, render
from agent_gate.discovery.meta import hydrated, meta_tools, stripped
from agent_gate.discovery.tokens import count
from agent_gate.discovery.usage import usage

SMALL_CATALOG = 3000
"""Up-front tokens below which the full list is the best deal: no detour costs less than it saves."""


@dataclass(frozen=True, slots=True)
class ServerCost:
    """What one namespace adds up front in `full` and in `proxy`; in `gateway` it adds nothing."""

    namespace: str
    tools: int
    full: int
    proxy: int


@dataclass(frozen=True, slots=True)
class Economy:
    """Up-front tokens per mode, tokens until a tool can be called, and the mode to use."""

    tools: int
    upfront: Mapping[Mode, int]
    callable_within: Mapping[Mode, int]
    servers: tuple[ServerCost, ...]
    recommended: Mode
    reason: str


def definition_of(tool: Tool) -> dict[str, Any]:
    """A tool as `full` mode lists it."""
    body = hydrated(tool)
    del body["tool_id"]
    return body


def cost(value: Any) -> int:
    """The tokens of a value as compact JSON."""
    return count(msgspec.json.encode(value).decode())


def measure(tools: Sequence[Tool], deck: Deck | None = None) -> Economy:
    """What the modes cost for these tools."""
    cards = deck or Deck.build(tools)
    whole = {tool.id: cost(definition_of(tool)) for tool in tools}
    short = {tool.id: cost(entry) for tool in tools for entry in stripped([tool], cards)}
    spaces = sorted({tool.namespace for tool in tools})
    servers = tuple(
        _server(name, [tool for tool in tools if tool.namespace == name], whole, short) for name in spaces
    )
    upfront: dict[Mode, int] = {
        "full": sum(whole.values()),
        "proxy": sum(short.values()) + sum(map(cost, meta_tools("proxy"))),
        "gateway": sum(map(cost, meta_tools("gateway"))),
    }
    from statistics import median  # and random numbers and fractions, for whoever opens this page

    schema = round(median(whole.values())) if whole else 0
    browse = TOP_K * round(median(count(render(card)) for card in cards.cards.values())) if cards.cards else 0
    usages = round(median(cost(usage(tool.input_schema)) for tool in tools)) if tools else 0
    reach: dict[Mode, int] = {
        "full": upfront["full"],
        "proxy": upfront["proxy"] + schema,
        "gateway": upfront["gateway"] + browse + usages,
    }
    mode, reason = recommend(upfront, reach)
    return Economy(len(tools), upfront, reach, servers, mode, reason)


def _server(
    name: str, tools: Sequence[Tool], whole: Mapping[str, int], short: Mapping[str, int]
) -> ServerCost:
    full = sum(whole[tool.id] for tool in tools)
    return ServerCost(name, len(tools), full, sum(short.get(tool.id, 0) for tool in tools))


def recommend(upfront: Mapping[Mode, int], reach: Mapping[Mode, int]) -> tuple[Mode, str]:
    """The mode for a catalog of this size, with the reason in words."""
    if upfront["full"] <= SMALL_CATALOG:
        return "full", f"the whole list is {upfront['full']} tokens; searching would cost more than it saves"
    return (
        "gateway",
        f"{upfront['gateway']} tokens up front instead of {upfront['full']}, {reach['gateway']} to a call",
    )

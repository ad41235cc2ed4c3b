"""Turns catalogs and our requests into suites that a search can be judged on."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_gate.core.catalog import Catalog, Listing, build
from agent_gate.core.tool import Definition, Tool
from agent_gate.discovery.browse import TOP_K, Browser
from agent_gate.discovery.cards import render
from agent_gate.discovery.economy import cost
from agent_gate.discovery.meta import meta_tools
from agent_gate.discovery.rank import Index
from agent_gate.discovery.tokens import count
from agent_gate.discovery.usage import usage

REQUESTS = Path(__file__).parents[1] / "tests" / "discovery" / "data"
METATOOL = "MetaTool"
MOST = 10
"""How many cards a search is judged on."""

Search = Callable[[str, int], list[str]]


@dataclass(frozen=True)
class Task:
    """A request, and for each of its parts the ids of the tools that would serve it."""

    query: str
    right: list[set[str]]


@dataclass(frozen=True)
class Suite:
    """A catalog with its requests; a step is a part of a request."""

    name: str
    catalog: Catalog
    tasks: list[Task]

    @property
    def steps(self) -> list[tuple[str, set[str]]]:
        return [(task.query, right) for task in self.tasks for right in task.right]


def metatool(folder: Path) -> Suite:
    """The MetaTool data (MIT licence): metatool_tools.json and metatool_queries.jsonl."""
    tools = json.loads((folder / "metatool_tools.json").read_text())
    definitions = [Definition(name=tool["name"], description=tool["description"]) for tool in tools]
    catalog = build([Listing(key="plugins", namespace="plugins", definitions=definitions)])
    ids = {tool.upstream: tool.id for tool in catalog.tools}
    lines = map(json.loads, (folder / "metatool_queries.jsonl").read_text().splitlines())
    return Suite(METATOOL, catalog, [Task(line["query"], [{ids[line["tool"]]}]) for line in lines])


def listing(path: Path) -> Listing:
    server = json.loads(path.read_text())
    definitions = [
        Definition(
            name=tool["name"], description=tool.get("description", ""), input_schema=tool["inputSchema"]
        )
        for tool in server["tools"]
    ]
    return Listing(
        key=server["server"],
        namespace=server["server"],
        title=server["title"],
        description=f"{server['title']} {server['instructions']}"[:300],
        definitions=definitions,
    )


def own(name: str, folder: Path) -> Suite:
    """The servers listed in a folder, with the requests of the same name that they can serve."""
    catalog = build(listing(path) for path in sorted(folder.glob("*.json")))
    ids = {f"{tool.namespace}:{tool.upstream}": tool.id for tool in catalog.tools}
    lines = map(json.loads, (REQUESTS / f"{name}.jsonl").read_text().splitlines())
    tasks = [
        Task(line["query"], [{ids[each] for each in part if each in ids} for part in line["right"]])
        for line in lines
    ]
    return Suite(name, catalog, [task for task in tasks if all(task.right)])


def searcher(index: Index) -> Search:
    return lambda query, limit: [hit.tool.id for hit in index.search(query, limit)]


def place(found: Sequence[str], right: set[str]) -> int | None:
    """Where the first right tool stands, counted from 0."""
    return next((at for at, each in enumerate(found) if each in right), None)


def gain(at: int | None) -> float:
    """1 for a right tool first, less for later places, 0 beyond the fifth."""
    return 0.0 if at is None or at >= 5 else 1 / math.log2(at + 2)


def gains(search: Search, task: Task) -> list[float]:
    found = search(task.query, 5)
    return [gain(place(found, right)) for right in task.right]


def to_reach(browser: Browser, query: str, tool: Tool, top_k: int = TOP_K) -> int | None:
    """Tokens from nothing to a tool that can be called in `gateway` mode; None when the query does not find it."""
    cards = browser.query(query, top_k)
    if all(card.id != tool.id for card in cards):
        return None
    spent = sum(map(cost, meta_tools("gateway"))) + count("\n".join(map(render, cards)))
    return spent + cost(usage(tool.input_schema))

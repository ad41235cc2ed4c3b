"""How well and how cheaply tools are found: `python bench/discovery.py --metatool DIR --catalogs DIR`.

`--metatool` is a folder with metatool_tools.json and metatool_queries.jsonl (MetaTool data, MIT licence).
`--catalogs` is a folder with one JSON file per MCP server, written by `--list NAME COMMAND…` through the official
client. The requests for these servers are ours: tests/discovery/data/tasks.jsonl, a line per request with the
right tools for each of its parts. `--semantic` adds the encoder, `--leave-one-out` judges each server with the
synonyms that two other servers voted for, `--related` writes the table of related words anew.
"""

import argparse
import asyncio
import json
import math
import struct
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from agent_gate.core.catalog import Catalog, Listing, build
from agent_gate.core.tool import Definition
from agent_gate.discovery import rank
from agent_gate.discovery.browse import Browser
from agent_gate.discovery.economy import measure, to_reach
from agent_gate.discovery.rank import Index
from agent_gate.discovery.semantic import MODEL_PACKAGE, load
from agent_gate.discovery.stemmer import stem
from agent_gate.discovery.text import STOP, words
from agent_gate.discovery.thesaurus import Thesaurus, thesaurus

TASKS = Path(__file__).parents[1] / "tests" / "discovery" / "data" / "tasks.jsonl"
DATA = files("agent_gate.discovery") / "data"

Search = Callable[[str, int], list[str]]


@dataclass(frozen=True)
class Task:
    """A request, and for each of its parts the ids of the tools that would serve it."""

    query: str
    right: list[set[str]]


@dataclass(frozen=True)
class Suite:
    name: str
    catalog: Catalog
    tasks: list[Task]


def metatool(folder: Path) -> Suite:
    tools = json.loads((folder / "metatool_tools.json").read_text())
    definitions = [Definition(name=tool["name"], description=tool["description"]) for tool in tools]
    catalog = build([Listing(key="plugins", namespace="plugins", definitions=definitions)])
    ids = {tool.upstream: tool.id for tool in catalog.tools}
    lines = map(json.loads, (folder / "metatool_queries.jsonl").read_text().splitlines())
    return Suite("MetaTool", catalog, [Task(line["query"], [{ids[line["tool"]]}]) for line in lines])


def own(folder: Path) -> Suite:
    listings = []
    for path in sorted(folder.glob("*.json")):
        server = json.loads(path.read_text())
        listings.append(
            Listing(
                key=server["server"],
                namespace=server["server"],
                title=server["title"],
                description=f"{server['title']} {server['instructions']}"[:300],
                definitions=[
                    Definition(
                        name=tool["name"],
                        description=tool.get("description", ""),
                        input_schema=tool["inputSchema"],
                    )
                    for tool in server["tools"]
                ],
            )
        )
    catalog = build(listings)
    ids = {f"{tool.namespace}:{tool.upstream}": tool.id for tool in catalog.tools}
    lines = map(json.loads, TASKS.read_text().splitlines())
    tasks = [
        Task(line["query"], [{ids[each] for each in part if each in ids} for part in line["right"]])
        for line in lines
    ]
    return Suite("own catalogs", catalog, [task for task in tasks if all(task.right)])


def gains(search: Search, task: Task) -> list[float]:
    """For each part of a task 1 for a right tool first, less for later places, 0 beyond the fifth."""
    found = search(task.query, 5)
    places = [next((at for at, each in enumerate(found) if each in right), None) for right in task.right]
    return [0.0 if place is None else 1 / math.log2(place + 2) for place in places]


def score(search: Search, tasks: Sequence[Task]) -> str:
    values = [gain for task in tasks for gain in gains(search, task)]
    first, five = (sum(gain >= bar for gain in values) / len(values) for bar in (1.0, 0.01))
    return f"first {first:6.1%}  within five {five:6.1%}  nDCG@5 {sum(values) / len(values):.3f}  n={len(values)}"


def searcher(index: Index) -> Search:
    return lambda query, limit: [hit.tool.id for hit in index.search(query, limit)]


def contextweaver(catalog: Catalog) -> Search | None:
    """The reference implementation's router, where it is installed."""
    try:
        from contextweaver.routing.router import Router
        from contextweaver.routing.tree import TreeBuilder
        from contextweaver.types import SelectableItem
    except ImportError:
        return None
    items = [
        SelectableItem(tool.id, "tool", tool.name, tool.description or tool.name, namespace=tool.namespace)
        for tool in catalog.tools
    ]
    router = Router(TreeBuilder().build(items), items, beam_width=3, top_k=5)
    return lambda query, limit: list(router.route(query).candidate_ids[:limit])


def report(suite: Suite, semantic: bool) -> None:
    titles = suite.catalog.titles()
    print(f"{suite.name}: {len(suite.catalog.tools)} tools, {len(suite.tasks)} requests")
    print("  agent-gate           ", score(searcher(Index(suite.catalog.tools, titles)), suite.tasks))
    encoder = load() if semantic else None
    if encoder:
        index = Index(suite.catalog.tools, titles, semantic=encoder)
        print("  agent-gate [semantic]", score(searcher(index), suite.tasks))
    reference = contextweaver(suite.catalog)
    if reference:
        print("  contextweaver        ", score(reference, suite.tasks))


def by_server(suite: Suite) -> Iterator[tuple[str, list[Task]]]:
    groups = defaultdict(list)
    for task in suite.tasks:
        for space in sorted({each.partition(":")[0] for right in task.right for each in right}):
            groups[space].append(task)
    yield from sorted(groups.items())


def votes(suites: Sequence[Suite]) -> dict[str, set[str]]:
    """For each line of the synonyms, the servers whose requests it helps."""
    text = (DATA / "synonyms.txt").read_text()
    related = zlib.decompress((DATA / "related.bin").read_bytes())
    searches = {suite.name: searcher(Index(suite.catalog.tools, suite.catalog.titles())) for suite in suites}
    tasks = [
        (suite.name, task, {stem(word) for word in words(task.query)})
        for suite in suites
        for task in suite.tasks
    ]
    helped: dict[str, set[str]] = {}
    for line in [line for line in text.splitlines() if line and line[0] not in "#["]:
        own_words = {stem(word) for word in line.partition(">")[0].split()}
        touched = [(name, task) for name, task, said in tasks if own_words & said]
        with_line = [gains(searches[name], task) for name, task in touched]
        lesser = Thesaurus(text.replace(f"{line}\n", ""), related)
        with swapped(lesser):
            without = [gains(searches[name], task) for name, task in touched]
        helped[line] = {
            min(right) if name == "MetaTool" else min(right).partition(":")[0]
            for (name, task), before, after in zip(touched, with_line, without, strict=True)
            for right, one, other in zip(task.right, before, after, strict=True)
            if one > other
        }
    return helped


class swapped:  # noqa: N801 - reads as a verb
    """While entered, the ranking uses another thesaurus."""

    def __init__(self, other: Thesaurus) -> None:
        self.other = other

    def __enter__(self) -> None:
        self.kept, rank.thesaurus = rank.thesaurus, lambda: self.other  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        rank.thesaurus = self.kept


def leave_one_out(suite: Suite, suites: Sequence[Suite]) -> None:
    text = (DATA / "synonyms.txt").read_text()
    related = zlib.decompress((DATA / "related.bin").read_bytes())
    helped = votes(suites)
    search = searcher(Index(suite.catalog.tools, suite.catalog.titles()))
    values: list[float] = []
    for space, tasks in by_server(suite):
        kept = [line for line in text.splitlines() if line not in helped or len(helped[line] - {space}) >= 2]
        with swapped(Thesaurus("\n".join(kept), related)):
            found = [gain for task in tasks for gain in gains(search, task)]
        values += found
        print(f"    {space:12} within five {sum(map(bool, found)):3} of {len(found)}")
    print(f"  leave one server out: within five {sum(map(bool, values)) / len(values):.1%}  n={len(values)}")


def expense(suite: Suite) -> None:
    """CPU of indexing and querying, at the catalog's size and at five thousand tools."""
    listings = list(suite.catalog.listings.values())
    copies = -(-5000 // max(1, len(suite.catalog.tools)))
    large = build(
        replace(listing, key=f"{listing.key}{copy}", namespace=f"{listing.namespace}{copy}")
        for copy in range(copies)
        for listing in listings
    )
    thesaurus()
    for tools in (suite.catalog.tools, large.tools[:5000]):
        start = time.process_time()
        index = Index(tools, large.titles())
        built = time.process_time() - start
        start = time.process_time()
        Index(tools, large.titles(), index)
        again = time.process_time() - start
        spent = []
        for task in suite.tasks:
            start = time.process_time()
            index.search(task.query, 8)
            spent.append(time.process_time() - start)
        print(
            f"  {len(tools)} tools: index {built * 1e3:.0f} ms, after a change {again * 1e3:.0f} ms, "
            f"query mean {sum(spent) / len(spent) * 1e3:.2f} ms, median {median(spent) * 1e3:.2f} ms"
        )


def tokens(suite: Suite) -> None:
    browser = Browser(suite.catalog.tools, suite.catalog.titles())
    economy = measure(suite.catalog.tools, browser.deck)
    for mode in ("full", "proxy", "gateway"):
        print(
            f"  {mode:8} {economy.upfront[mode]:7} tokens up front, {economy.saving(mode):6.1%} fewer than full"
        )
    known = {tool.id: tool for tool in suite.catalog.tools}
    spent = [to_reach(browser, task.query, known[min(right)]) for task in suite.tasks for right in task.right]
    reached = [each for each in spent if each is not None]
    print(
        f"  a right tool can be called after {median(reached):.0f} tokens in the median ({len(reached)} of {len(spent)})"
    )


async def list_server(name: str, command: Sequence[str], folder: Path) -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]))
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        hello = await session.initialize()
        listed = await session.list_tools()
        body: dict[str, Any] = {
            "server": name,
            "title": hello.server_info.name,
            "instructions": hello.instructions or "",
            "tools": [
                tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools
            ],
        }
        (folder / f"{name}.json").write_text(json.dumps(body))
        print(f"{name}: {len(body['tools'])} tools")


def write_related(path: Path, most: int = 16, floor: float = 0.46) -> None:
    """Neighbours of the model's own word list, most common words first, as the thesaurus reads them."""
    import numpy as np

    encoder: Any = load()
    module = __import__(MODEL_PACKAGE)
    listed = (Path(str(module.__file__)).parent / "model" / "vocab.txt").read_text().splitlines()
    known = [word for word in listed if word.isascii() and word.isalpha() and len(word) > 2]
    vectors = encoder.place(known)._vectors
    order: dict[str, int] = {}
    for word in known:
        order.setdefault(stem(word), len(order))
    near: dict[str, dict[str, float]] = defaultdict(dict)
    useful = [at for at, word in enumerate(known) if word not in STOP]
    candidates = vectors[useful]
    for at in useful:
        likeness = candidates @ vectors[at]
        nearest = np.argpartition(-likeness, most * 3)[: most * 3]
        for place in nearest[np.argsort(-likeness[nearest], kind="stable")]:
            other = stem(known[useful[int(place)]])
            if other != stem(known[at]) and likeness[place] >= floor:
                row = near[stem(known[at])]
                row[other] = max(row.get(other, 0.0), float(likeness[place]))
    body = bytearray()
    for root in order:
        row_items = sorted(near[root].items(), key=lambda item: (-item[1], item[0]))[:most]
        body.append(len(row_items))
        for other, value in row_items:
            body += struct.pack("<HB", order[other], min(255, round(value * 255)))
    text = "\n".join(order).encode()
    path.write_bytes(zlib.compress(struct.pack("<I", len(text)) + text + bytes(body), 9))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--metatool", type=Path)
    parser.add_argument("--catalogs", type=Path)
    parser.add_argument("--semantic", action="store_true")
    parser.add_argument("--leave-one-out", action="store_true")
    parser.add_argument("--related", type=Path)
    parser.add_argument("--list", nargs=argparse.REMAINDER, metavar="NAME COMMAND")
    options = parser.parse_args()
    if options.related:
        write_related(options.related)
    if options.list:
        asyncio.run(list_server(options.list[0], options.list[1:], options.catalogs or Path("catalogs")))
        return
    suites = [metatool(options.metatool)] if options.metatool else []
    suites += [own(options.catalogs)] if options.catalogs else []
    if not suites and not options.related:
        sys.exit("Name the data: --metatool DIR, --catalogs DIR, or both.")
    for suite in suites:
        report(suite, options.semantic)
        expense(suite)
        if suite.name != "MetaTool":
            tokens(suite)
            if options.leave_one_out:
                leave_one_out(suite, suites)


if __name__ == "__main__":
    main()

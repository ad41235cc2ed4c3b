"""How well and how cheaply tools are found: `python -m bench.discovery --metatool DIR --catalogs DIR`.

`--metatool` is a folder with metatool_tools.json and metatool_queries.jsonl (MetaTool data, MIT licence).
`--catalogs`, `--second` and `--unseen` are folders with one JSON file per MCP server, written by
`--list NAME COMMAND…` through the official client. The requests for these servers are ours, a line per request
with the right tools for each of its parts: tests/discovery/data/tasks.jsonl, second.jsonl and unseen.jsonl.
Nothing was tuned on the last. `--semantic` adds the encoder, `--folds` chooses the weights on other tools and
servers than those it judges, `--leave-one-out` judges each server with the synonyms that two others voted for.
"""

import argparse
import asyncio
import gc
import json
import math
import random
import re
import sqlite3
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from statistics import fmean, median
from typing import Any

from agent_gate.core.catalog import Catalog, Listing, build
from agent_gate.core.tool import Definition
from agent_gate.discovery import rank
from agent_gate.discovery.browse import Browser
from agent_gate.discovery.economy import measure, to_reach
from agent_gate.discovery.rank import Index
from agent_gate.discovery.semantic import load
from agent_gate.discovery.senses import rows
from agent_gate.discovery.stemmer import stem
from agent_gate.discovery.text import STOP, words
from agent_gate.discovery.thesaurus import Thesaurus

TASKS = Path(__file__).parents[1] / "tests" / "discovery" / "data"
DATA = files("agent_gate.discovery") / "data"

METATOOL = "MetaTool"

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
    return Suite(METATOOL, catalog, [Task(line["query"], [{ids[line["tool"]]}]) for line in lines])


def own(name: str, folder: Path, tasks_file: str) -> Suite:
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
    lines = map(json.loads, (TASKS / tasks_file).read_text().splitlines())
    tasks = [
        Task(line["query"], [{ids[each] for each in part if each in ids} for part in line["right"]])
        for line in lines
    ]
    return Suite(name, catalog, [task for task in tasks if all(task.right)])


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


def contextweaver(catalog: Catalog, width: int) -> Search | None:
    """The reference implementation's router, where it is installed; it reads names, descriptions and tags."""
    try:
        from contextweaver.routing.router import Router
        from contextweaver.routing.tree import TreeBuilder
        from contextweaver.types import SelectableItem
    except ImportError:
        return None
    items = [
        SelectableItem(
            tool.id,
            "tool",
            tool.name,
            tool.description or tool.name,
            namespace=tool.namespace,
            args_schema=dict(tool.input_schema),
        )
        for tool in catalog.tools
    ]
    router = Router(TreeBuilder().build(items), items, beam_width=width)
    return lambda query, limit: list(router.route(query).candidate_ids[:limit])


def fts5(catalog: Catalog) -> Search:
    """SQLite's full-text search, with its stemmer, without fillers, the name worth three times the description."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE tools USING fts5(id UNINDEXED, name, description, tokenize='porter')")
    texts = [(tool.id, " ".join(words(tool.name)), tool.description) for tool in catalog.tools]
    base.executemany("INSERT INTO tools VALUES (?, ?, ?)", texts)

    def search(query: str, limit: int) -> list[str]:
        said = [word for word in re.findall(r"\w+", query.lower()) if word not in STOP]
        either = " OR ".join(f'"{word}"' for word in said)
        sql = "SELECT id FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, 0, 3, 1) LIMIT ?"
        return [found for (found,) in base.execute(sql, (either, limit))] if either else []

    return search


def report(suite: Suite, semantic: bool) -> None:
    titles = suite.catalog.titles()
    print(f"{suite.name}: {len(suite.catalog.tools)} tools, {len(suite.tasks)} requests")
    print("  agent-gate           ", score(searcher(Index(suite.catalog.tools, titles)), suite.tasks))
    encoder = load() if semantic else None
    if encoder:
        index = Index(suite.catalog.tools, titles, semantic=encoder)
        print("  agent-gate [semantic]", score(searcher(index), suite.tasks))
    print("  SQLite FTS5          ", score(fts5(suite.catalog), suite.tasks))
    for width, label in ((2, "contextweaver        "), (50, "contextweaver, wide  ")):
        reference = contextweaver(suite.catalog, width)
        if reference:
            print(f"  {label}", score(reference, suite.tasks))


WEIGHTS = [
    {"SENSE": sense, "OTHER_VERB": verb, "COVERAGE": coverage}
    for sense in (0.35, 0.65, 0.9)
    for verb in (0.2, 0.4, 0.5)
    for coverage in (0.3, 0.45, 0.6)
]


class weighed:  # noqa: N801 - reads as a verb
    """While entered, the ranking uses other weights."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.weights = weights

    def __enter__(self) -> None:
        self.kept = {name: getattr(rank, name) for name in self.weights}
        vars(rank).update(self.weights)

    def __exit__(self, *_: object) -> None:
        vars(rank).update(self.kept)


def folds(suites: Sequence[Suite]) -> None:
    """Each fifth of the tools of MetaTool, and each server, judged with the weights that did best on the rest."""
    cells: dict[tuple[str, str], list[list[float]]] = {}
    for suite in suites:
        search = searcher(Index(suite.catalog.tools, suite.catalog.titles()))
        number = {tool.id: at for at, tool in enumerate(suite.catalog.tools)}
        for at, weights in enumerate(WEIGHTS):
            with weighed(weights):
                for task in suite.tasks:
                    one = min(task.right[0])
                    group = str(number[one] % 5) if suite.name == METATOOL else one.partition(":")[0]
                    cell = cells.setdefault((suite.name, group), [[] for _ in WEIGHTS])
                    cell[at] += [float(gain > 0) for gain in gains(search, task)]
    for suite in suites:
        judged: list[float] = []
        for key in [key for key in cells if key[0] == suite.name]:
            best = max(range(len(WEIGHTS)), key=lambda at, key=key: _elsewhere(cells, key, at))  # type: ignore[misc]
            judged += cells[key][best]
        print(f"  {suite.name}, weights chosen elsewhere: within five {fmean(judged):.1%}  n={len(judged)}")


def _elsewhere(
    cells: Mapping[tuple[str, str], list[list[float]]], left_out: tuple[str, str], at: int
) -> float:
    """How well a choice of weights does in the other cells, each suite counting alike."""
    by_suite: dict[str, list[float]] = defaultdict(list)
    for key, cell in cells.items():
        if key != left_out:
            by_suite[key[0]] += cell[at]
    return fmean(map(fmean, by_suite.values()))


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
            min(right) if name == METATOOL else min(right).partition(":")[0]
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
        self.kept = vars(rank)["thesaurus"]
        vars(rank)["thesaurus"] = lambda: self.other

    def __exit__(self, *_: object) -> None:
        vars(rank)["thesaurus"] = self.kept


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
    rows()
    for label, tools in (
        ("tools", suite.catalog.tools),
        ("tools, copied", large.tools[:5000]),
        ("tools of mixed texts", mixed(suite.catalog, 6000).tools[:5000]),
    ):
        gc.collect()
        start = time.process_time()
        index = Index(tools, large.titles())
        built = time.process_time() - start
        start = time.process_time()
        Index(tools, large.titles(), index)
        again = time.process_time() - start
        spent = sorted(_cpu(index, task.query) for task in suite.tasks)
        print(
            f"  {len(tools)} {label}: index {built * 1e3:.0f} ms, after a change {again * 1e3:.0f} ms, "
            f"query mean {fmean(spent) * 1e3:.2f} ms, 95th percentile {spent[len(spent) * 95 // 100] * 1e3:.2f} ms"
        )


def mixed(catalog: Catalog, size: int) -> Catalog:
    """Tools of a kilobyte, put together from the sentences, names and arguments of real ones."""
    draw = random.Random(3)
    sentences = [each for tool in catalog.tools for each in re.split(r"(?<=[.!?])\s+|\n+", tool.description)]
    arguments = [
        (name, schema)
        for tool in catalog.tools
        for name, schema in (tool.input_schema.get("properties") or {}).items()
    ]
    definitions = [
        Definition(
            name=f"{draw.choice(catalog.tools).name[:40]}_{number}",
            description=" ".join(draw.choices(sentences, k=8)),
            input_schema={
                "type": "object",
                "properties": dict(draw.choices(arguments, k=6) if arguments else []),
            },
        )
        for number in range(size)
    ]
    return build([Listing(key="mixed", namespace="mixed", definitions=definitions)])


def _cpu(index: Index, query: str) -> float:
    start = time.process_time()
    index.search(query, 8)
    return time.process_time() - start


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for each in ("--metatool", "--catalogs", "--second", "--unseen"):
        parser.add_argument(each, type=Path)
    for each in ("--semantic", "--folds", "--leave-one-out"):
        parser.add_argument(each, action="store_true")
    parser.add_argument("--list", nargs=argparse.REMAINDER, metavar="NAME COMMAND")
    options = parser.parse_args()
    if options.list:
        asyncio.run(list_server(options.list[0], options.list[1:], options.catalogs or Path("catalogs")))
        return
    tuned = [metatool(options.metatool)] if options.metatool else []
    tuned += [own("first catalogs", options.catalogs, "tasks.jsonl")] if options.catalogs else []
    tuned += [own("second catalogs", options.second, "second.jsonl")] if options.second else []
    unseen = [own("unseen catalogs", options.unseen, "unseen.jsonl")] if options.unseen else []
    if not tuned and not unseen:
        sys.exit("Name the data: --metatool DIR, --catalogs DIR, --second DIR or --unseen DIR.")
    for suite in [*tuned, *unseen]:
        report(suite, options.semantic)
        expense(suite)
        if suite.name != METATOOL:
            tokens(suite)
            if options.leave_one_out and suite in tuned:
                leave_one_out(suite, tuned)
    if options.folds:
        folds(tuned)


if __name__ == "__main__":
    main()

"""How well and how cheaply tools are found on real servers: `python -m bench.discovery`.

Lists the servers of bench/catalogs.py, once, and judges the modes and contextweaver's gateway on our own requests for
them, a line per request with the right tools for each of its parts: first.jsonl, second.jsonl and unseen.jsonl in
tests/discovery/data. Nothing was tuned on the last. `--metatool` adds a folder with the MetaTool data.
"""

import argparse
import gc
import json
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from agent_gate.core.catalog import Catalog, Listing, build
from agent_gate.core.tool import Definition
from agent_gate.discovery.browse import TOP_K, Browser
from agent_gate.discovery.economy import cost, measure
from agent_gate.discovery.meta import hydrated
from agent_gate.discovery.rank import Index
from agent_gate.discovery.semantic import load
from agent_gate.discovery.senses import rows
from agent_gate.discovery.text import STOP, words
from agent_gate.discovery.tokens import count
from bench import catalogs
from bench.machine import HERE
from bench.subjects import Peer
from bench.suites import METATOOL, MOST, Search, Suite, gain, metatool, own, place, searcher, to_reach
from bench.tuning import folds, leave_one_out

VERSION, WIDEST = "0.18.2", 50
"""Of contextweaver, and how many branches of its tree it follows at most; as it comes it follows three."""

WEAVER = Peer("contextweaver", (str(HERE / "weaver.py"),), (f"contextweaver=={VERSION}",))


@dataclass(frozen=True, slots=True)
class Row:
    """One way to show a catalog: tokens of the first list, tokens to a callable tool, and the places of right tools."""

    label: str
    upfront: int | None = None
    reached: Sequence[int] = ()
    places: Sequence[int | None] = ()

    def cells(self, full: int) -> Iterator[str]:
        yield self.label
        yield f"{self.upfront:,}" if self.upfront is not None else ""
        yield f"{1 - self.upfront / full:.1%}" if self.upfront is not None else ""
        steps = f" ({len(self.reached)} of {len(self.places)})" if self.places else ""
        yield f"{median(self.reached):,.0f}{steps}" if self.reached else ""
        for most in (1, 5, 10):
            within = [at is not None and at < most for at in self.places]
            yield f"{fmean(within):.1%}" if within else ("every tool is listed" if most == 1 else "")
        yield f"{fmean(map(gain, self.places)):.3f}" if self.places else ""


def listed(suite: Suite) -> Iterator[Row]:
    """The modes that list every tool: the right one has to be read, and in `proxy` its schema fetched."""
    upfront = measure(suite.catalog.tools).upfront
    known = {tool.id: tool for tool in suite.catalog.tools}
    schemas = [cost(hydrated(known[min(right)])) for _, right in suite.steps]
    yield Row("full", upfront["full"], [upfront["full"]] * len(schemas))
    yield Row("proxy", upfront["proxy"], [upfront["proxy"] + each for each in schemas])


def browsed(suite: Suite, semantic: bool) -> Row:
    """The mode `gateway`; tokens are counted where the first browse shows the tool."""
    encoder = load() if semantic else None
    browser = Browser(suite.catalog.tools, suite.catalog.titles(), semantic=encoder)
    search = searcher(browser.index)
    known = {tool.id: tool for tool in suite.catalog.tools}
    spent = [
        to_reach(browser, query, known[tool])
        for query, right in suite.steps
        for tool in [each for each in search(query, TOP_K) if each in right][:1]
    ]
    upfront = measure(suite.catalog.tools, browser.deck).upfront["gateway"]
    label = "gateway, with the encoder" if semantic else "gateway"
    return Row(label, upfront, [each for each in spent if each is not None], judge(search, suite))


def judge(search: Search, suite: Suite) -> list[int | None]:
    return [place(search(query, MOST), right) for query, right in suite.steps]


def contextweaver(suite: Suite, width: int | None) -> Row:
    """The reference implementation's gateway, with its own tools, cards and answers, in its own interpreter."""
    tools = [
        {
            "id": tool.id,
            "definition": {
                "name": f"{tool.namespace}.{tool.name}",
                "description": tool.description or tool.name,
                "inputSchema": dict(tool.input_schema),
            },
        }
        for tool in suite.catalog.tools
    ]
    asked = {
        "tools": tools,
        "width": width,
        "steps": [(query, sorted(right)) for query, right in suite.steps],
    }
    command = [str(WEAVER.python()), *WEAVER.command]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
    answered = json.loads(done.stdout)
    upfront = sum(map(cost, answered["listing"]))
    pairs = list(zip(answered["answers"], suite.steps, strict=True))
    reached = [upfront + count(one["shown"]) + count(one["said"]) for one, _ in pairs if one["said"]]
    label = f"contextweaver {VERSION}{', widest' if width else ''}"
    return Row(label, upfront, reached, [place(one["found"], right) for one, (_, right) in pairs])


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


def text(said: str | bytes | None) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else said or ""


def compared(suite: Suite, semantic: bool) -> Iterator[Row]:
    yield from listed(suite)
    yield browsed(suite, semantic=False)
    if semantic:
        yield browsed(suite, semantic=True)
    try:
        yield contextweaver(suite, None)
        yield contextweaver(suite, WIDEST)
    except subprocess.CalledProcessError as failed:
        print(f"contextweaver is left out: {catalogs.last_line(text(failed.stderr))}", file=sys.stderr)
    yield Row("SQLite FTS5", places=judge(fts5(suite.catalog), suite))


def table(suites: Sequence[Suite], semantic: bool) -> None:
    print(
        "| tools | shown by | first listing, tokens | fewer | until callable, median | right tool first |",
        end="",
    )
    print(" within 5 | within 10 | nDCG@5 |\n|" + "---|" * 9)
    for suite in suites:
        found = list(compared(suite, semantic))
        size = f"{len(suite.catalog.tools)} tools of {len(suite.catalog.listings)} servers"
        name = f"{suite.name}: {size}, {len(suite.steps)} steps"
        for row in found:
            print(f"| {name} | {' | '.join(row.cells(found[0].upfront or 1))} |", flush=True)
            name = ""


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
            f"{suite.name}, {len(tools)} {label}: index {built * 1e3:.0f} ms, after a change {again * 1e3:.0f} ms, "
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


def arguments() -> Any:
    parser = argparse.ArgumentParser(
        prog="python -m bench.discovery",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--metatool", type=Path, help="metatool_tools.json and metatool_queries.jsonl")
    parser.add_argument("--semantic", action="store_true", help="also with the encoder of the semantic extra")
    parser.add_argument("--cpu", action="store_true", help="CPU of indexing and querying, to 5,000 tools")
    parser.add_argument("--folds", action="store_true", help="weights chosen on other tools and servers")
    parser.add_argument(
        "--leave-one-out",
        action="store_true",
        help="judge each server with synonyms that two others voted for",
    )
    return parser.parse_args()


def main() -> None:
    options = arguments()
    for server, reason in catalogs.gather():
        print(f"{server.name} ({server.pin}) is left out: {reason}")
    sets = (catalogs.FIRST, catalogs.SECOND, catalogs.UNSEEN)
    suites = [metatool(options.metatool)] if options.metatool else []
    suites += [suite for name in sets if (suite := own(name, catalogs.CATALOGS / name)).tasks]
    if not suites:
        print("No server could be listed here, so there is nothing to compare.")
        return
    table(suites, options.semantic)
    tuned = [suite for suite in suites if suite.name != catalogs.UNSEEN]
    for suite in suites if options.cpu else ():
        expense(suite)
    for suite in tuned if options.leave_one_out else ():
        if suite.name != METATOOL:
            leave_one_out(suite, tuned)
    if options.folds:
        folds(tuned)


if __name__ == "__main__":
    main()

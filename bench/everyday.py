"""How well requests of everyday life find their tool: `python -m bench.everyday [--metatool DIR]`.

Thirteen servers with the tools that such servers usually have, and requests for them in the words of people
(bench/everyday). They were written before the ranking was run on them; some synonyms were chosen with them in view
since. `nothing.jsonl` holds requests that no tool
here serves, for which the right answer is that there is none; the bounds for that were chosen with it in view, and
`nothing_unseen.jsonl` was written after that, before it was run. With `--metatool` all of MetaTool too.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean

from agent_gate.core.catalog import Catalog, Listing, build
from agent_gate.core.tool import Definition
from agent_gate.discovery.rank import Index
from agent_gate.discovery.semantic import Semantic, load
from bench.suites import Suite, Task, metatool, place

FOLDER = Path(__file__).parent / "everyday"
NAMED = {
    "remember that I prefer tea": "memory:",
    "count orders by status": "postgres:query",
    "write a letter in Word": "word:create_document",
    "add a chart to the spreadsheet": "excel:create_chart",
}


def catalog() -> Catalog:
    servers = json.loads((FOLDER / "tools.json").read_text())
    return build(
        Listing(
            key=key,
            namespace=key,
            title=server["title"],
            definitions=[Definition(name=name, description=said) for name, said in server["tools"].items()],
        )
        for key, server in servers.items()
    )


def everyday() -> Suite:
    made = catalog()
    ids = {f"{tool.namespace}:{tool.upstream}": tool.id for tool in made.tools}
    lines = map(json.loads, (FOLDER / "requests.jsonl").read_text().splitlines())
    return Suite(
        "everyday",
        made,
        [Task(line["query"], [{ids[one] for one in part} for part in line["right"]]) for line in lines],
    )


def nothing(name: str) -> list[str]:
    return [json.loads(line)["query"] for line in (FOLDER / name).read_text().splitlines()]


def judge(suite: Suite, semantic: Semantic | None, *, missed: bool = False) -> None:
    index = Index(suite.catalog.tools, suite.catalog.titles(), semantic=semantic)
    places, none = [], 0
    for query, right in suite.steps:
        found = [hit.tool.id for hit in index.search(query, 10)]
        places.append(place(found, right))
        none += not found
        if missed and (places[-1] is None or places[-1] >= 5):
            print("    missed:", query, found[:3])
    first, five, ten = (fmean(at is not None and at < most for at in places) for most in (1, 5, 10))
    print(
        f"  {suite.name}: first {first:.1%}, within 5 {five:.1%}, within 10 {ten:.1%}, none {none}  n={len(places)}"
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--metatool", type=Path)
    arguments.add_argument("--missed", action="store_true")
    chosen = arguments.parse_args()
    suites = [everyday()]
    if chosen.metatool:
        whole = metatool(chosen.metatool)
        suites.append(Suite(whole.name, whole.catalog, whole.tasks))
    for label, semantic in (("words", None), ("with the encoder", load())):
        if label != "words" and semantic is None:
            continue
        print(label)
        for suite in suites:
            judge(suite, semantic, missed=chosen.missed)
        index = Index(suites[0].catalog.tools, suites[0].catalog.titles(), semantic=semantic)
        for name in ("nothing.jsonl", "nothing_unseen.jsonl", "nothing_fresh.jsonl"):
            said = [not index.search(query, 8) for query in nothing(name)]
            print(f"  {name}: said so {fmean(said):.1%}  n={len(said)}")
        for query, right in NAMED.items():
            found = [hit.tool.id for hit in index.search(query, 8)]
            print(
                f"  {query}: {next((at + 1 for at, one in enumerate(found) if one.startswith(right)), None)}"
            )


if __name__ == "__main__":
    main()

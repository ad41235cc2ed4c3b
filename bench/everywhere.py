"""How well 109 requests find their tool among all listed servers at once: `python -m bench.everywhere [--semantic]`.

The tools were drawn by lot from the catalogs of bench/catalogs.py, and a request was written for each before the
ranking was run on any. Then they were halved: idioms and synonyms were written with the half `tune` in view, and
`held` was run when that was done. Who wrote the requests wrote the idioms too.
"""

import argparse
import json
from statistics import fmean

from agent_gate.core.catalog import build
from agent_gate.discovery.rank import Index
from agent_gate.discovery.semantic import load
from bench.catalogs import CATALOGS
from bench.suites import REQUESTS, Suite, Task, listing, place


def halves() -> list[Suite]:
    files = {path.stem: path for path in sorted(CATALOGS.glob("*/*.json"))}
    catalog = build(listing(path) for path in files.values())
    ids = {f"{tool.namespace}:{tool.upstream}": tool.id for tool in catalog.tools}
    lines = [json.loads(line) for line in (REQUESTS / "everywhere.jsonl").read_text().splitlines()]
    made = []
    for half in ("tune", "held"):
        tasks = [
            Task(line["query"], [{ids[each] for each in part if each in ids} for part in line["right"]])
            for line in lines
            if line["half"] == half
        ]
        made.append(Suite(half, catalog, [task for task in tasks if all(task.right)]))
    return made


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--semantic", action="store_true")
    encoders = [None, load()] if arguments.parse_args().semantic else [None]
    for encoder in encoders:
        for suite in halves():
            index = Index(suite.catalog.tools, suite.catalog.titles(), semantic=encoder)
            found = [
                place([hit.tool.id for hit in index.search(query, 10)], right) for query, right in suite.steps
            ]
            first, five, ten = (fmean(at is not None and at < most for at in found) for most in (1, 5, 10))
            how = "encoder" if encoder else "words"
            print(
                f"{suite.name}, {how}: first {first:.1%}, within 5 {five:.1%}, within 10 {ten:.1%}  "
                f"n={len(found)} of {len(suite.catalog.tools)} tools"
            )


if __name__ == "__main__":
    main()

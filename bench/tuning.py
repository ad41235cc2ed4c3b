"""Judges the ranking with less of its tuning: weights chosen elsewhere, and synonyms that others voted for."""

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from statistics import fmean

from agent_gate.discovery import rank
from agent_gate.discovery.rank import Index
from agent_gate.discovery.signals import SIGNALS, Signal
from agent_gate.discovery.stemmer import stem
from agent_gate.discovery.text import words
from agent_gate.discovery.thesaurus import Thesaurus
from bench.suites import METATOOL, Suite, Task, gains, searcher

DATA = files("agent_gate.discovery") / "data"


def with_sense(weight: float) -> Sequence[Signal]:
    """The signals, with another weight for the sense of words."""
    return [replace(signal, weight=weight) if signal.name == "sense" else signal for signal in SIGNALS]


WEIGHTS = [
    {"SIGNALS": with_sense(sense), "OTHER_VERB": verb, "COVERAGE": coverage}
    for sense in (0.35, 0.65, 0.9)
    for verb in (0.2, 0.4, 0.55)
    for coverage in (0.3, 0.45, 0.6)
]


class weighed:  # noqa: N801 - reads as a verb
    """While entered, the ranking uses other weights."""

    def __init__(self, weights: Mapping[str, object]) -> None:
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

"""Makes items fit into a budget: what is too much of becomes a group, which names what is in it and can be opened.

Space is given out from the top: each part gets what it needs, up to a level at which all fit; what needs more is cut
inside. A run of alike items keeps its first ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent_gate.sources.browser.trim.item import INDENT, Item, clip

GROUP_LINE = 90
LEAST = 60
LONGEST_PERIOD = 6
NewGroup = Callable[[Sequence[Item]], str]
"""Keeps items behind a new reference, and returns it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Neighbours that are alike, `period` items each time; a single item is a run of one."""

    items: Sequence[Item]
    period: int = 1

    @property
    def size(self) -> int:
        return sum(item.size for item in self.items)

    @property
    def weight(self) -> int:
        return max(item.weight for item in self.items)


def segments(items: Sequence[Item]) -> list[Segment]:
    """Runs of items that repeat in shape; at least three times, to be worth a count."""
    out: list[Segment] = []
    shapes, at = [item.shape for item in items], 0
    while at < len(items):
        period, times = longest_run(shapes, at)
        if times >= 3:
            out.append(Segment(items[at : at + period * times], period))
            at += period * times
        else:
            out.append(Segment(items[at : at + 1]))
            at += 1
    return out


def longest_run(shapes: Sequence[str], at: int) -> tuple[int, int]:
    """The period that repeats furthest from here, and how often."""
    best = (1, 1)
    for period in range(1, LONGEST_PERIOD + 1):
        first = shapes[at : at + period]
        times = 1
        while len(first) == period and shapes[at + period * times : at + period * (times + 1)] == first:
            times += 1
        if times >= 3 and period * times > best[0] * best[1]:
            best = (period, times)
    return best


def fit(items: Sequence[Item], budget: int, group: NewGroup) -> list[Item]:
    """The items in at most `budget` characters, the rest of them behind groups."""
    if sum(item.size for item in items) <= budget:
        return list(items)
    parts = segments(items)
    if len(parts) * LEAST > budget:
        return prefix(items, budget, group)
    level = water_level([(part.size, part.weight) for part in parts], budget - GROUP_LINE)
    out: list[Item] = []
    for part in parts:
        room = max(LEAST, int(level * part.weight))
        if part.size <= room:
            out.extend(part.items)
        elif len(part.items) > 1:
            out.extend(fewer(part, room, group))
        else:
            out.append(inside(part.items[0], room, group))
    return out


def water_level(needs: Sequence[tuple[int, int]], budget: int) -> float:
    """The level up to which every part can have what it needs, by weight, so that all of them fit."""
    left, weights = float(budget), float(sum(weight for _, weight in needs))
    for size, weight in sorted(needs, key=lambda need: need[0] / need[1]):
        if weights and size / weight > left / weights:
            return left / weights
        left, weights = left - size, weights - weight
    return float(budget)


def fewer(run: Segment, room: int, group: NewGroup) -> list[Item]:
    """The first of a run, at least one of them, and a group with the others."""
    period, kept, left = run.period, 0, room - GROUP_LINE
    while kept + period < len(run.items):
        size = sum(item.size for item in run.items[kept : kept + period])
        if kept and size > left:
            break
        left, kept = left - size, kept + period
    first = list(run.items[:kept])
    if left < 0:
        first = [inside(item, max(LEAST, (room - GROUP_LINE) // period), group) for item in first]
    return [*first, group_item(run.items[kept:], group, count=(len(run.items) - kept) // period)]


def prefix(items: Sequence[Item], budget: int, group: NewGroup) -> list[Item]:
    """As many items as there is room for, each cut to its share, and a group with the rest."""
    kept = max(1, (budget - GROUP_LINE) // LEAST)
    share = max(LEAST, (budget - GROUP_LINE) // kept)
    first = [item if item.size <= share else inside(item, share, group) for item in items[:kept]]
    return [*first, group_item(items[kept:], group)] if items[kept:] else first


def inside(item: Item, room: int, group: NewGroup) -> Item:
    """One item cut to its room: its children fit what is left beside its own line."""
    own = len(item.line()) + 1
    if item.inline and own > room:
        opened = Item(item.role, item.name, item.ref, item.note, item.inline, (), item.weight)
        return inside(opened, room, group)
    if not item.children:
        return item if own <= room or item.ref else shortened(item, room)
    left = room - own
    if left < LEAST + GROUP_LINE // 2:
        return Item(
            item.role, item.name, item.ref, item.note, [group_item(item.children, group)], (), item.weight
        )
    children = fit(item.children, left - INDENT * min(len(item.children), left // LEAST), group)
    return Item(item.role, item.name, item.ref, item.note, children, (), item.weight)


def shortened(item: Item, room: int) -> Item:
    return Item(item.role, clip(item.name, max(20, room - 10)), item.ref, item.note)


def group_item(items: Sequence[Item], group: NewGroup, count: int = 0) -> Item:
    """The line of a group: how many things are in it, and the first and the last of them."""
    first, last = clip(items[0].first_name(), 24), clip(items[-1].first_name(), 24)
    names = f'"{first}"' if first == last or len(items) == 1 else f'"{first}" … "{last}"'
    acts = sum(1 for item in items for _ in item.refs())
    note = f"+{count or len(items)} more{f', {acts} to act on' if acts else ''}: {names}"
    return Item("group", "", group(items), note)

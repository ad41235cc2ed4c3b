"""A page as the agent sees it, and the groups that it can open."""

from collections.abc import Sequence

from agent_gate.sources.browser.trim.fit import fit
from agent_gate.sources.browser.trim.item import Item
from agent_gate.sources.browser.trim.write import write

BUDGET = 4_800
LEAST_BUDGET = 900
SHARE = 0.22
"""Of the characters of the whole tree: what a page may take although there would be room for more."""


class Groups:
    """What is behind each group's reference. Numbers go on from page to page, so that an old one means nothing else."""

    def __init__(self) -> None:
        self._last = 0
        self.items: dict[str, Sequence[Item]] = {}

    def add(self, items: Sequence[Item]) -> str:
        self._last += 1
        ref = f"g{self._last}"
        self.items[ref] = items
        return ref

    def forget(self) -> None:
        self.items.clear()


def open_items(items: Sequence[Item], groups: Groups, budget: int = BUDGET) -> str:
    """Items as text within the budget; what does not fit is behind new groups. The estimate is corrected by what was written."""
    room = budget
    for _ in range(6):
        length = len(write(fit(items, room, Groups().add)))
        if length <= budget:
            break
        room = int(room * min(0.9, budget / length))
    return write(fit(items, room, groups.add))


def budget_for(whole: int) -> int:
    """What a page may take, by the characters of its whole tree: never more than the budget, less where it is small."""
    return max(LEAST_BUDGET, min(BUDGET, int(whole * SHARE)))

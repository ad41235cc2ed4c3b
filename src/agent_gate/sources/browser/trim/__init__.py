"""Snapshots worth their tokens: a page's tree in a few thousand characters from which every actionable element can be
reached, by its reference or through a group that opens. Pure; nothing here asks a browser.

`simplify` (noise gone, wrappers unwrapped, rows on one line) ▸ `fit` (to a budget, with groups) ▸ `write` (text).
"""

from agent_gate.sources.browser.trim.item import Item
from agent_gate.sources.browser.trim.simplify import simplify
from agent_gate.sources.browser.trim.view import BUDGET, Groups, budget_for, open_items

__all__ = ["BUDGET", "Groups", "Item", "budget_for", "open_items", "simplify"]

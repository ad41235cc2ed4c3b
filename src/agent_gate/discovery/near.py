"""Finds the tools that a name was probably meant for: an id without its namespace or hash, or a slip of the pen."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from agent_gate.core.tool import Tool

MOST, ALIKE = 3, 0.75


def near_tools(name: str, tools: Iterable[Tool]) -> list[str]:
    """The ids of at most three visible tools, the likeliest first."""
    wanted = _plain(name)
    if not wanted:
        return []
    scored = ((_likeness(wanted, tool), tool.id) for tool in tools)
    return [id_ for _, id_ in sorted((-score, id_) for score, id_ in scored if score >= ALIKE)[:MOST]]


def _plain(name: str) -> str:
    """A name without what only tells versions of a tool apart, and with one kind of separator."""
    bare = name.strip().lower().partition("#")[0].partition("@")[0]
    return "".join(letter if letter.isalnum() else "_" for letter in bare).strip("_")


def _likeness(wanted: str, tool: Tool) -> float:
    return max(_alike(wanted, form) for form in _forms(tool))


def _forms(tool: Tool) -> Sequence[str]:
    return (_plain(tool.name), _plain(f"{tool.namespace}_{tool.name}"), _plain(tool.wire))


def _alike(wanted: str, form: str) -> float:
    if wanted == form:
        return 1.0
    matcher = SequenceMatcher(None, wanted, form, autojunk=False)
    if matcher.real_quick_ratio() < ALIKE or matcher.quick_ratio() < ALIKE:
        return 0.0
    return matcher.ratio()

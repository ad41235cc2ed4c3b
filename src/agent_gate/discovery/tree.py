"""Turns a catalog into paths: namespaces at the root, clusters inside a large namespace, tools as leaves.

A cluster is named after a word that its tools share, so adding a tool moves few others. Paths are matched
fully against the grammar; what is well-formed but absent is a different error from what is malformed.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from hashlib import sha256
from itertools import pairwise

from agent_gate.core.tool import Tool
from agent_gate.discovery.cards import AIM, CAP, MAX_ID
from agent_gate.discovery.stemmer import stem
from agent_gate.discovery.text import ACTIONS, STOP, words
from agent_gate.discovery.tokens import count
from agent_gate.errors import PathInvalid, PathNotFound

MAX_CHILDREN = 20
OTHER = "other"

_NAMESPACE = re.compile(r"[a-z][a-z0-9_-]{0,63}")
LONGEST_TOLD = 200
"""Of what a caller said, in an answer to it."""
_SEGMENT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_OUTSIDE = re.compile(r"[^a-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Group:
    """Some tools of a node that will be one child, and the word stems that no longer divide them."""

    label: str
    tools: list[Tool]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Branch:
    """A place in the tree: either `nodes` or `leaves` is filled. `size` counts the tools at and below it."""

    path: str
    namespace: str
    nodes: Mapping[str, "Branch"]
    leaves: Mapping[str, Tool]
    size: int


def parse_path(path: str) -> tuple[str, ...]:
    """The segments of a path, `*` only as the last; `PathInvalid` names the first offence."""
    if not path.startswith("/"):
        raise _invalid(path, "a path begins with /")
    if path == "/":
        return ()
    segments = tuple(path[1:].split("/"))
    for place, segment in enumerate(segments):
        if segment == "*" and place == len(segments) - 1:
            continue
        if segment == "*":
            raise _invalid(path, "* may only be the last segment")
        if not segment:
            raise _invalid(path, "a path has no empty segment and no trailing /")
        if not (_SEGMENT if place else _NAMESPACE).fullmatch(segment):
            raise _invalid(
                path, f"segment {place + 1} is not lower-case letters, digits, _ or - (64 at most)"
            )
    return segments


def _invalid(path: str, why: str) -> PathInvalid:
    return PathInvalid(
        f"Malformed path: {why}. Start at / and follow the ids of the cards; a tool's own id is a path too.",
        details={"path": path[:LONGEST_TOLD]},
    )


def grow(tools: Sequence[Tool]) -> Branch:
    """The tree of a catalog; the same for any order of the same tools."""
    spaces: dict[str, list[Tool]] = defaultdict(list)
    for tool in sorted(tools, key=lambda tool: tool.id):
        spaces[tool.namespace].append(tool)
    nodes = {
        name: _branch(f"/{name}", name, spaces[name], frozenset(map(stem, words(name))))
        for name in sorted(spaces)
    }
    return Branch("/", "", nodes, {}, len(tools))


def find(root: Branch, path: str) -> Branch | Tool:
    """The node or leaf at a path; a trailing `*` says the same as leaving it out."""
    place: Branch | Tool = root
    for segment in parse_path(path):
        if segment == "*":
            break
        if isinstance(place, Tool):
            raise _absent(path, {})
        child = place.nodes.get(segment) or place.leaves.get(segment) or _below(place, segment)
        if child is None:
            raise _absent(path, {**place.nodes, **place.leaves}, segment, place.path)
        place = child
    return place


def _below(place: Branch, segment: str) -> Tool | None:
    """The one tool of this name further down, for who does not know its cluster."""
    found = [
        tool
        for node in place.nodes.values()
        if place.path != "/" and (tool := node.leaves.get(segment) or _below(node, segment))
    ]
    return found[0] if len(found) == 1 else None


def _absent(path: str, near: Mapping[str, object], segment: str = "", at: str = "") -> PathNotFound:
    base = at.rstrip("/")
    close = [f"{base}/{name}" for name in get_close_matches(segment, sorted(near), n=3, cutoff=0.5)]
    advice = f"{f'Did you mean {close[0]}? ' if close else ''}Browse {at or '/'} to see what is there."
    details = {"path": path, **({"did_you_mean": close} if close else {})}
    return PathNotFound(f"Nothing is at this path. {advice}", details=details)


def segment_of(name: str) -> str:
    """A tool's name as a path segment: lower case, other characters folded to `_`."""
    return _OUTSIDE.sub("_", name.lower()).lstrip("_-")[:64] or "tool"


def _branch(path: str, namespace: str, tools: list[Tool], used: frozenset[str]) -> Branch:
    if len(tools) <= MAX_CHILDREN:
        return Branch(path, namespace, {}, _leaves(tools), len(tools))
    found = _by_word(tools, used) or _by_letter(tools)
    groups = sorted(found, key=lambda group: (group.label == OTHER, group.label))
    if not _cards_fit(path, groups, AIM):
        groups = [replace(group, label=str(place)) for place, group in enumerate(groups, 1)]
        if not _cards_fit(path, groups, CAP):
            return Branch(path, namespace, {}, _leaves(tools), len(tools))
    nodes = {
        group.label: _branch(f"{path}/{group.label}", namespace, group.tools, used | group.words)
        for group in groups
    }
    return Branch(path, namespace, nodes, {}, len(tools))


def _cards_fit(path: str, groups: Iterable[Group], most: int) -> bool:
    """Whether each child has a card of at most `most` tokens, whose id is its path; gibberish has a token a letter."""
    paths = [f"{path}/{group.label}" for group in groups]
    return all(len(child) <= MAX_ID and count(f"{child} (internal)", most) <= most for child in paths)


def _leaves(tools: list[Tool]) -> dict[str, Tool]:
    names = Counter(segment_of(tool.name) for tool in tools)
    leaves = {}
    for tool in tools:
        segment = segment_of(tool.name)
        if names[segment] > 1:
            segment = f"{segment[:55]}_{sha256(tool.id.encode()).hexdigest()[:8]}"
        leaves[segment] = tool
    return dict(sorted(leaves.items()))


def _by_word(tools: list[Tool], used: frozenset[str]) -> list[Group]:
    """Groups by the most shared word of the names, things before actions; none when words do not divide them."""
    named = [
        {stem(word): word for word in words(tool.name) if len(word) > 1 and word not in STOP}
        for tool in tools
    ]
    shared = Counter(root for found in named for root in found.keys() - used)
    usable = {root for root, n in shared.items() if 2 <= n < len(tools)}

    first = Counter(_telling(found, usable, shared) for found in named)
    ranked = sorted(((-n, root) for root, n in first.items() if root and n > 1))
    kept = {root for _, root in ranked[: MAX_CHILDREN - 1]}
    members: dict[str, list[tuple[Tool, str]]] = defaultdict(list)
    for tool, found in zip(tools, named, strict=True):
        root = _telling(found, kept, shared)
        members[root].append((tool, found.get(root, "")))
    if len(members) < 2:
        return []
    return [_group(root, pairs, shared) for root, pairs in members.items()]


def _telling(found: Mapping[str, str], among: set[str], shared: Counter[str]) -> str:
    """The word of a name that most names share; an action in front only where nothing else is shared."""
    action = next((root for root in found if root in ACTIONS), "")
    return max(among & found.keys(), key=lambda root: (root != action, shared[root], root), default="")


def _group(root: str, pairs: list[tuple[Tool, str]], shared: Counter[str]) -> Group:
    tools = [tool for tool, _ in pairs]
    if not root:
        return Group(OTHER, tools, frozenset(shared))
    label, _ = min(Counter(word for _, word in pairs).items(), key=lambda item: (-item[1], item[0]))
    return Group(segment_of(label if label != OTHER else f"{label}_"), tools, frozenset({root}))


def _by_letter(tools: list[Tool]) -> list[Group]:
    """Even slices of the names in order, each labelled by its first and last name."""
    ordered = sorted(tools, key=lambda tool: (segment_of(tool.name), tool.id))
    slices = min(MAX_CHILDREN, -(-len(ordered) // MAX_CHILDREN))
    edges = [len(ordered) * place // slices for place in range(slices + 1)]
    groups = [ordered[start:stop] for start, stop in pairwise(edges)]
    labels = [f"{segment_of(group[0].name)[:26]}-{segment_of(group[-1].name)[:26]}" for group in groups]
    seen = Counter(labels)
    unique = [label if seen[label] == 1 else f"{label}_{place}" for place, label in enumerate(labels, 1)]
    return [Group(label, group, frozenset()) for label, group in zip(unique, groups, strict=True)]

"""Tells what kind of doing a request asks for and what kind a tool does: reading, creating, changing, deleting.

A request to show something is rarely served by a tool that deletes it, however many words they share.
"""

from collections.abc import Sequence
from typing import Final

from agent_gate.core.tool import Tool
from agent_gate.discovery.stemmer import stem
from agent_gate.discovery.text import words

READ, CREATE, UPDATE, DELETE = 1, 2, 4, 8
_CLASSES = {
    READ: """
        get list read show fetch view describe retrieve search find query look lookup inspect count display see
        explain browse discover check compare
    """,
    CREATE: """
        create add insert make generate build compose draft append upload attach write send publish reply install
        import start begin post put set
    """,
    UPDATE: """
        update edit modify change rename move replace patch set adjust correct resize format put assign write close
        archive mark
    """,
    DELETE: """
        delete remove drop clear erase archive wipe discard trash destroy cancel unsubscribe uninstall stop close end
    """,
}
_ASKING = frozenset(
    ["which", "what", "who", "whose", "when", "where", "why", "is", "are", "did", "does", "was", "were"]
)
_MEASURES = frozenset(["many", "much", "long", "far", "big", "fast", "old", "often", "large"])
_ARTICLES = frozenset(["a", "an", "me", "some", "new", "one", "us", "another", "it"])
_PAIRS = {
    ("give", "me"): READ,
    ("tell", "me"): READ,
    ("get", "rid"): DELETE,
}


_ACTING = frozenset(
    [
        "run",
        "execute",
        "exec",
        "eval",
        "invoke",
        "trigger",
        "launch",
        "deploy",
        "push",
        "commit",
        "merge",
        "restart",
        "reboot",
        "kill",
        "pay",
        "buy",
        "order",
        "transfer",
        "book",
        "click",
        "type",
        "fill",
        "press",
        "drag",
        "navigate",
        "turn",
        "toggle",
        "lock",
        "unlock",
        "enable",
        "disable",
    ]
)
"""What changes something without being a kind of its own."""


def _kinds() -> dict[str, int]:
    found: dict[str, int] = {}
    for kind, listed in _CLASSES.items():
        for word in listed.split():
            found[word] = found.get(word, 0) | kind
    return found


KINDS: Final = _kinds()
_BY_ROOT: Final = {stem(word): kind for word, kind in KINDS.items()}


def asked(query: str) -> int:
    """The kinds that a request may ask for, as bits; 0 when it does not say."""
    said = words(query[:200])
    if (said and said[0] in _ASKING) or (said[:1] == ["how"] and not _MEASURES.isdisjoint(said[1:2])):
        return READ
    if said and said[0] in ("new", "another"):
        return CREATE
    return next(filter(None, map(_kind, said, [*said[1:], ""])), 0)


def _kind(word: str, following: str) -> int:
    if word == "make" and following not in _ARTICLES:
        return CREATE | UPDATE
    return _PAIRS.get((word, following)) or KINDS.get(word, 0)


def done(tool: Tool) -> int:
    """The kinds of doing that a tool's name speaks of, or else the first word of its description."""
    return _named(words(tool.name)) or _first(words(tool.description[:60]))


def has_effects(tool: Tool) -> bool:
    """Whether a tool is known to change something: by its traits, by what its server says, or by its name.

    Of a tool that nobody says anything of, this is not known, and so not said.
    """
    traits, said = tool.definition.traits, tool.definition.annotations
    if traits.read_only or traits.destructive:
        return traits.destructive
    does, acts = done(tool), not _ACTING.isdisjoint(words(tool.name))
    if does or acts:
        return acts or does != READ
    return said.get("readOnlyHint") is False or said.get("destructiveHint") is True


def _named(name: Sequence[str]) -> int:
    found = 0
    for before, word in zip(["", *name], name, strict=False):
        if not found or before in ("or", "and"):
            found |= KINDS.get(word, 0)
    return found


def _first(said: Sequence[str]) -> int:
    return _BY_ROOT.get(stem(said[0]), 0) if said and said[0] not in _ASKING else 0


def strangeness(wanted: int, offered: int) -> float:
    """How far what a tool does is from what is asked: 0 for no conflict, 1 for a clear one."""
    if not wanted or not offered or wanted & offered:
        return 0.0
    return 0.35 if wanted | offered == CREATE | UPDATE else 1.0

"""Can a pattern match any signature at all? Signatures have a form, and some patterns ask for what no form has."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from string import printable

from agent_gate.core.signature import PLACEHOLDER, RESERVED
from agent_gate.core.tool import Tool
from agent_gate.policy.globs import Moves, glob, meets
from agent_gate.policy.match import bare_possible
from agent_gate.policy.names import head, names

LITERAL_KEY = re.compile(r"(?:\(|, )([A-Za-z0-9_.-]+)=")
NAME_ALSO = frozenset("_:.-/")
UNWRITTEN = RESERVED - {"%"}
REFUSED = frozenset("*?[](),")
CHARACTERS = frozenset(printable) | {"é"}
NAME, NAMED, FIRST, KEY, VALUE, SEPARATOR, END, SPELLED = range(8)


def pairs_moves(state: int, character: str) -> Iterable[int]:
    """`name`, `name()` and `name(key=value, key=value)`, where neither keys nor values have reserved characters."""
    if state in (NAME, NAMED):
        if character == "(":
            return (FIRST,)
        return (NAME, END) if state == NAME and (character.isalnum() or character in NAME_ALSO) else ()
    if state == SEPARATOR:
        return (KEY,) if character == " " else ()
    if state == VALUE and character in ",)":
        return (SEPARATOR,) if character == "," else (END,)
    if state == FIRST and character == ")":
        return (END,)
    if state != VALUE and character == "=":
        return (VALUE,) if state != END else ()
    written = state != END and character not in UNWRITTEN and character.isprintable()
    return (VALUE if state == VALUE else KEY,) if written else ()


def named_moves(name: str, after: Sequence[int]) -> Moves:
    """The same for one name, or one beginning, spelled out by the states from `SPELLED` on."""

    def moves(state: int, character: str) -> Iterable[int]:
        if state < SPELLED:
            return pairs_moves(state, character)
        place = state - SPELLED
        if name[place] != character:
            return ()
        return (state + 1,) if place + 1 < len(name) else after

    return moves


def template_moves(text: str) -> tuple[Moves, int]:
    """The signatures of a tool with a template: its text, and values without pattern characters in their places."""
    literals = PLACEHOLDER.split(text)[0::2]
    written = "".join(literals)
    gaps, place = set(), 0
    for literal in literals[:-1]:
        place += len(literal)
        gaps.add(place)

    def moves(state: int, character: str) -> Iterable[int]:
        if written[state : state + 1] == character:
            yield state + 1
        if state in gaps and character not in REFUSED:
            yield state

    return moves, len(written)


def fits_tool(pattern: str, tool: Tool, *, allows: bool = False) -> bool:
    """Whether some call of this tool has a signature that the pattern matches."""
    template, one = tool.definition.template, glob(pattern)
    for name in names(pattern, tool, allows=allows):
        if template is None:
            after = (NAMED, END) if bare_possible(tool) else (NAMED,)
            if in_order(pattern) and meets(one, named_moves(name, after), SPELLED, END, CHARACTERS):
                return True
        else:
            moves, last = template_moves(f"{name}({template})" if template else name)
            if meets(one, moves, 0, last, CHARACTERS):
                return True
    return False


def fits_pairs(pattern: str, start: str = "") -> bool:
    """Whether some call of some tool without a template, whose name begins so, has a signature that matches."""
    literal = head(pattern)
    if not in_order(pattern) or not (literal.startswith(start) or start.startswith(literal)):
        return False
    first = SPELLED if start else NAME
    return meets(glob(pattern), named_moves(start, (NAME,)), first, END, CHARACTERS)


def in_order(pattern: str) -> bool:
    """Whether the argument names that a pattern spells out stand as signatures have them."""
    return all(before < after for before, after in pairwise(LITERAL_KEY.findall(pattern)))

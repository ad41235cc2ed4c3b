"""URI templates of resources (RFC 6570, as far as servers use it): whether a URI fits one, in linear time."""

import re
from functools import lru_cache

EXPRESSION = re.compile(r"\{([^{}]*)\}")
ALLOWED = {
    "": re.compile(r"[^/?#]+"),
    "*": re.compile(r"[^?#]+"),
    "+": re.compile(r".+", re.DOTALL),
    "#": re.compile(r"(?:#.*)?", re.DOTALL),
    ".": re.compile(r"(?:\.[^/?#]*)?"),
    "/": re.compile(r"(?:/[^?#]*)?"),
    ";": re.compile(r"(?:;[^/?#]*)?"),
    "?": re.compile(r"(?:\?[^#]*)?"),
    "&": re.compile(r"(?:&[^#]*)?"),
}
OPERATORS = frozenset("+#./;?&")
LONGEST = 4_096


@lru_cache(maxsize=4096)
def parts(template: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The literal before the first expression, then each expression's operator with the literal after it."""
    pieces = EXPRESSION.split(template[:LONGEST])
    return pieces[0], tuple(zip(map(operator_of, pieces[1::2]), pieces[2::2], strict=True))


def operator_of(expression: str) -> str:
    """Its first character, where that is one. `{path*}` without one means several segments, as many servers write it."""
    if expression[:1] in OPERATORS:
        return expression[:1]
    return "*" if expression.endswith("*") else ""


def fits(template: str, uri: str) -> bool:
    """Each expression takes what stands before the next literal; nothing is ever tried twice."""
    start, rest = parts(template)
    if len(uri) > LONGEST or not uri.startswith(start):
        return False
    at = len(start)
    for number, (operator, literal) in enumerate(rest, 1):
        end = closing(uri, operator, literal, at, last=number == len(rest))
        if end < at or not ALLOWED[operator].fullmatch(uri, at, end):
            return False
        at = end + len(literal)
    return at == len(uri)


def closing(uri: str, operator: str, literal: str, at: int, *, last: bool) -> int:
    """Where an expression ends: before its literal, or where its characters do; -1 where it cannot."""
    if last:
        return len(uri) - len(literal) if uri.endswith(literal) else -1
    if not literal:
        found = ALLOWED[operator].match(uri, at)
        return found.end() if found else -1
    return uri.find(literal, at + (operator in "+*"))

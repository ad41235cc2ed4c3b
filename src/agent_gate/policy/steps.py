"""Steps up: a path or an address with `..` ends elsewhere than it begins, so an allow for a folder does not cover it."""

import re
from collections.abc import Iterator, Mapping

from agent_gate.core.tool import Json

CONFINED = re.compile(r"[/\\][^*?\[]*[*?\[]")
LEADS_OUT = re.compile(r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){2}(?![\w.-])", re.IGNORECASE)


def inside(value: Json) -> Iterator[Json]:
    """The value, and everything it holds, names of members too."""
    yield value
    if isinstance(value, Mapping):
        yield from value
    held = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for item in held:
        if item is not None:
            yield from inside(item)


def confines(pattern: str) -> bool:
    """Whether a pattern reads like everything below a folder or an address."""
    return ".." not in pattern and CONFINED.search(pattern) is not None


def leads_out(value: Json) -> bool:
    """Whether a path or an address in the value goes up with `..`, so that it ends elsewhere than it begins."""
    return any(isinstance(one, str) and LEADS_OUT.search(one) for one in inside(value))

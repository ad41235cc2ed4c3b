"""JSON from strangers: one reading only, bounded depth, and nothing that another parser would read otherwise."""

import re

import msgspec

from agent_gate.core.tool import Json
from agent_gate.errors import InvalidArgs

MOST_DEPTH = 64
STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
DEEP = f"it is nested more than {MOST_DEPTH} levels deep"
CONTAINERS = (dict, list)


class MalformedJson(ValueError):
    """What is wrong with the text, in a few words that never repeat it."""


def strict_json(text: str | bytes) -> Json:
    """The value, or `MalformedJson` for bad syntax, NaN, lone surrogates, repeated keys and deep nesting."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        raise MalformedJson("it is not JSON") from None
    except RecursionError:
        raise MalformedJson(DEEP) from None
    # Only a text that parsed has closed strings, without which this expression would take quadratic time.
    bare = STRING.sub("", text if isinstance(text, str) else text.decode())
    if bare.count(":") != count_keys(value, 1):
        raise MalformedJson("a key is given twice in one object")
    return value


def count_keys(value: Json, level: int) -> int:
    """The keys of all objects inside, as parsed; the text has more colons where one was repeated."""
    if not isinstance(value, CONTAINERS):
        return 0
    if level > MOST_DEPTH:
        raise MalformedJson(DEEP)
    count, items = (len(value), value.values()) if isinstance(value, dict) else (0, value)
    for item in items:
        if isinstance(item, CONTAINERS):
            count += count_keys(item, level + 1)
    return count


def parse(text: str | bytes) -> Json:
    """As `strict_json`, for arguments: what is wrong is an `InvalidArgs`."""
    try:
        return strict_json(text)
    except MalformedJson as error:
        raise InvalidArgs(f"This is not valid JSON: {error}") from None

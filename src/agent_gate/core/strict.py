"""JSON from strangers: one reading only, bounded depth, and nothing that another parser would read otherwise."""

import re
from typing import Final

import msgspec

from agent_gate.core.tool import Json

MOST_DEPTH: Final = 64
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
BRACKET = re.compile(r"[\[\]{}]")


class MalformedJson(ValueError):
    """What is wrong with the text, in a few words that never repeat it."""


def strict_json(text: str | bytes) -> Json:
    """The value, or `MalformedJson` for bad syntax, NaN, lone surrogates, repeated keys and deep nesting."""
    try:
        plain = text if isinstance(text, str) else text.decode()
        bare = STRING.sub("", plain)
        if bare.count("[") + bare.count("{") > MOST_DEPTH and depth(bare) > MOST_DEPTH:
            raise MalformedJson(f"it is nested more than {MOST_DEPTH} levels deep")
        value = msgspec.json.decode(plain)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise MalformedJson("it is not JSON") from None
    if bare.count(":") != count_keys(value):
        raise MalformedJson("a key is given twice in one object")
    return value


def depth(bare: str) -> int:
    """How deep brackets nest in a text whose strings were taken out."""
    now = most = 0
    for match in BRACKET.finditer(bare):
        now += 1 if match[0] in "[{" else -1
        most = max(most, now)
    return most


def count_keys(value: Json) -> int:
    if isinstance(value, dict):
        return len(value) + sum(count_keys(item) for item in value.values() if isinstance(item, dict | list))
    if isinstance(value, list):
        return sum(count_keys(item) for item in value if isinstance(item, dict | list))
    return 0

"""JSON from strangers: bounded depth, no repeated keys, no NaN, no lone surrogates, and never a crash."""

import json
import re
from typing import Any

import msgspec

from agent_gate.errors import InvalidArgs

MAX_DEPTH = 64
SPACED = re.compile(rb'"[ \t\r\n]+:')
decode = msgspec.json.Decoder().decode


def keys_and_depth(value: Any, depth: int = 0) -> int:
    """How many keys there are in all objects; raises where the nesting goes too deep."""
    if depth > MAX_DEPTH:
        raise InvalidArgs(f"The JSON is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return len(value) + sum(
            keys_and_depth(item, depth + 1) for item in value.values() if isinstance(item, dict | list)
        )
    return sum(keys_and_depth(item, depth + 1) for item in value if isinstance(item, dict | list))


def no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise InvalidArgs("The JSON has an object with a repeated key")
    return out


def parse(body: bytes | str) -> Any:
    """Decode strictly; `InvalidArgs` says what is wrong.

    The decoder keeps the last of two equal keys, so the keys are counted: only where the text could hold more of
    them than the value does, it is read again slowly.
    """
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    try:
        value = decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:120]
        raise InvalidArgs(f"This is not valid JSON: {why}") from None
    if isinstance(value, dict | list) and (keys_and_depth(value) != data.count(b'":') or SPACED.search(data)):
        json.loads(data, object_pairs_hook=no_repeats)
    return value

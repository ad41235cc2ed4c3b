"""Messages that give a key twice in one object are refused: two programs could read them differently.

Every key is followed by a colon, so a text has more of them than what was parsed has keys where one was repeated.
Counting is all that most messages cost; only what colons inside strings make doubtful is taken apart.
"""

import msgspec

from agent_gate.core.strict import STRING
from agent_gate.core.tool import Json
from agent_gate.mcp.errors import PARSE_ERROR, RpcError
from agent_gate.mcp.messages import Message, decode
from agent_gate.surfaces.mcp.incoming.params import NOT_JSON, CallParams, Params

CONTAINERS = frozenset({dict, list})
BLANK = bytes.maketrans(b"\t\n\r", b"   ")


def refuse_repeats(body: bytes, message: Message, params: Params) -> None:
    """Raise where an object of the request in `body`, read as `message` and `params`, gives a key twice."""
    keys = 3
    objects: tuple[dict[str, Json], ...] = ()
    if type(params) is CallParams:
        keys += 2
        objects = (params.given or {}, params.meta)
        keys += (params.given is not None) + bool(params.meta)
    elif message.params and isinstance(params, dict):
        keys += 1
        objects = (params,)
    colons = body.count(b":")
    # Most objects have no others inside them, and then no colon is left to account for.
    if colons != keys + sum(map(len, objects)):
        keys += sum(map(keys_in, objects))
        if colons != keys:
            look_closer(body, keys)


def keys_in(value: dict[str, Json]) -> int:
    """The keys of this object and of all inside it; never deeper than what was let in."""
    count = len(value)
    for item in value.values():
        kind = type(item)
        if kind in CONTAINERS and item:
            count += keys_in(item) if kind is dict else keys_in_items(item)
    return count


def keys_in_items(items: list[Json]) -> int:
    return sum(
        keys_in(item) if type(item) is dict else keys_in_items(item)
        for item in items
        if type(item) in CONTAINERS
    )


def look_closer(body: bytes, keys: int) -> None:
    """Leave out colons that are text, as far as counting can tell; what is unclear then is read as a whole."""
    after_quotes = body.count(b'":')
    if after_quotes != keys:
        # An escaped quote ends no key, unless it is the backslash before it that is escaped.
        after_quotes -= body.count(b'\\":') if b'\\\\"' not in body else 0
    apart = body.translate(BLANK).find(b" :") >= 0
    if after_quotes == keys and not apart:
        return
    try:
        repeated = STRING.sub("", body.decode()).count(":") != keys_in(decode(body))
    except (msgspec.DecodeError, RecursionError):  # in a member that nobody else reads
        raise RpcError(PARSE_ERROR, NOT_JSON) from None
    if repeated:
        raise RpcError(PARSE_ERROR, "Parse error: a key is given twice in one object")

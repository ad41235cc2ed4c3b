"""Signatures: the one string that policy matches, the person sees and the audit keeps.

A tool with a template renders it (`ha_call_service(light.turn_on, light.bedroom)`); any other tool renders its
wire name and `key=value` pairs in key order, encoded so that no value can fake a separator.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from hashlib import sha256

from agent_gate.core.call import encode
from agent_gate.core.tool import Definition, Json, Signer

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
UNSAFE = re.compile(r"[^A-Za-z0-9_.:/@+ -]")
RESERVED = frozenset("=%*?[](),")
LONGEST_VALUE = 120
KEPT_OF_LONG = 80
CUT = "…"
DIGEST = 32
"""Hex digits; with half of them, two texts that share one can be found within the hour."""
LARGEST_WRITTEN = 2.0**63


def alike(value: Json) -> Json:
    """The value with equal numbers written alike, so that 5.0 does not slip past a rule about 5."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < LARGEST_WRITTEN else value
    if isinstance(value, Mapping):
        return {key: alike(inner) for key, inner in value.items()}
    return [alike(inner) for inner in value] if isinstance(value, list) else value


def written(value: Json) -> str:
    return value if isinstance(value, str) else encode(alike(value)).decode()


def scalar(value: Json) -> str:
    """A JSON scalar as it stands in a signature."""
    return "" if value is None else written(value)


MASK = "•••"
"""Stands for a value that is not shown."""


def placeholders(template: str) -> list[str]:
    return PLACEHOLDER.findall(template)


def compile_template(name: str, template: str) -> Signer:
    """A signer for `template`; an absent optional argument leaves its place empty."""
    if not template:
        return lambda _arguments: name
    pieces = PLACEHOLDER.split(f"{name}({template})")
    literals, names = pieces[0::2], pieces[1::2]

    def sign(arguments: Mapping[str, Json]) -> str:
        out = [literals[0]]
        for argument, literal in zip(names, literals[1:], strict=True):
            out.append(scalar(arguments.get(argument)))
            out.append(literal)
        return "".join(out)

    return sign


def encode_character(found: re.Match[str]) -> str:
    return encoded(found[0])


@lru_cache(4096)
def encoded(character: str) -> str:
    if character in RESERVED or character == CUT or unicodedata.category(character)[0] in "CZ":
        return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
    return character


def safe(text: str, longest: float = LONGEST_VALUE) -> str:
    """`text` with everything that could be read as structure percent-encoded, and long text cut with its digest."""
    if len(text) > longest:
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST]
        return UNSAFE.sub(encode_character, text[:KEPT_OF_LONG]) + f"{CUT}{len(text)}:{digest}"
    return UNSAFE.sub(encode_character, text)


safe_key = lru_cache(4096)(safe)
"""Argument names repeat, and those that fit into a schema are short."""


def pair(key: str, value: Json, longest: float) -> str:
    text = value if type(value) is str else written(value)
    name = safe_key(key) if len(key) <= KEPT_OF_LONG else safe(key, longest)
    return f"{name}={safe(text, longest)}"


def pairs(name: str, arguments: Mapping[str, Json], longest: float = LONGEST_VALUE) -> str:
    """`git__push(branch=main, remote=origin)`; without arguments, the bare name."""
    if len(arguments) > 1:
        return f"{name}({', '.join([pair(key, arguments[key], longest) for key in sorted(arguments)])})"
    for key, value in arguments.items():
        return f"{name}({pair(key, value, longest)})"
    return name


def compile_signer(wire: str, definition: Definition) -> Signer:
    if definition.template is not None:
        return compile_template(wire, definition.template)
    if definition.secret:
        return lambda arguments: pairs(wire, _without_values(arguments, definition.secret))
    return partial(pairs, wire)


def _without_values(arguments: Mapping[str, Json], secret: frozenset[str]) -> Mapping[str, Json]:
    """A signature is shown, stored and matched in plain text; a secret is none of these."""
    return {name: MASK if name in secret else value for name, value in arguments.items()}


def undeclared(name: str, arguments: Mapping[str, Json]) -> str:
    """The signature of a call to a tool that nobody declared: its values in the order of their keys."""
    values = ", ".join(str(arguments[key]) for key in sorted(arguments))
    return f"{name}({values})" if values else name


def unvalued(name: str, keys: Iterable[str]) -> str:
    """What is kept of a call to an unknown tool: the names of its arguments in the place of their values."""
    return undeclared(name, {key: safe(key) for key in keys})
